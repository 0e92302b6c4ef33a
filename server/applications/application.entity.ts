import { defineEntity } from '@mikro-orm/core'
import { Offer } from '../offers/offer.entity.ts'
import { id, moment, oneOf, text, word } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

export const APPLICATION_STATUSES = ['pending', 'approved', 'rejected'] as const

export const Application = defineEntity({
  name: 'Application',
  tableName: 'applications',
  properties: {
    id: id().primary(),
    offer: () => refersTo(Offer),
    /** The offer's owner, kept here so that a merchant's list needs no join. */
    merchant: () => refersTo(User),
    creator: () => refersTo(User),
    status: word<(typeof APPLICATION_STATUSES)[number]>(),
    message: text().nullable(),
    promotion_url: text().nullable(),
    decision_reason: text().nullable(),
    decided_at: moment().nullable(),
    created_at: moment(),
  },
  checks: [oneOf('applications', 'status', APPLICATION_STATUSES)],
  uniques: [
    {
      name: 'applications_one_alive',
      properties: ['offer', 'creator'],
      where: "status in ('pending', 'approved')",
    },
  ],
  indexes: [
    { name: 'applications_offer', properties: ['offer', 'id'] },
    { name: 'applications_merchant', properties: ['merchant', 'id'] },
    { name: 'applications_creator', properties: ['creator', 'id'] },
  ],
})
