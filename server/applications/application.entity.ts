import { defineEntity } from '@mikro-orm/core'
import { applicationStatus } from '../../shared/schemas/applications.ts'
import { Offer } from '../offers/offer.entity.ts'
import { enumText, epochMs, id, oneOf, refersTo, rowDigest, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'
import type { ApplicationStatus } from './application.rule.ts'

export const Application = defineEntity({
  name: 'Application',
  tableName: 'applications',
  properties: {
    id: id().primary(),
    offer_id: () => refersTo(Offer, 'offer_id'),
    /** The offer's merchant; a merchant's list needs no join. */
    merchant_id: () => refersTo(User, 'merchant_id'),
    creator_id: () => refersTo(User, 'creator_id'),
    status: enumText<ApplicationStatus>(),
    message: text().strictNullable(),
    promotion_url: text().strictNullable(),
    decision_reason: text().strictNullable(),
    decided_at: epochMs().strictNullable(),
    created_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('applications', 'status', applicationStatus.options)],
  uniques: [
    {
      name: 'applications_one_alive',
      properties: ['offer_id', 'creator_id'],
      where: "status in ('pending', 'approved')",
    },
  ],
  indexes: [
    { name: 'applications_offer', properties: ['offer_id', 'id'] },
    { name: 'applications_merchant', properties: ['merchant_id', 'id'] },
    { name: 'applications_creator', properties: ['creator_id', 'id'] },
  ],
})
