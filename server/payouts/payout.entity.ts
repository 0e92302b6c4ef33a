import { defineEntity } from '@mikro-orm/core'
import { BillingCycle } from '../billing/billing-cycle.entity.ts'
import { id, moment, oneOf, paisa, text, word } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

export const PAYOUT_STATES = ['pending', 'submitted', 'paid', 'failed'] as const

export const Payout = defineEntity({
  name: 'Payout',
  tableName: 'payouts',
  properties: {
    id: id().primary(),
    creator: () => refersTo(User),
    state: word<(typeof PAYOUT_STATES)[number]>(),
    amount: paisa(),
    processor_payout_id: text().nullable(),
    failure_reason: text().nullable(),
    created_at: moment(),
    submitted_at: moment().nullable(),
    settled_at: moment().nullable(),
  },
  checks: [
    oneOf('payouts', 'state', PAYOUT_STATES),
    { name: 'payouts_amount_check', expression: 'amount > 0' },
  ],
  uniques: [{ name: 'payouts_processor', properties: ['processor_payout_id'] }],
  indexes: [{ name: 'payouts_creator', properties: ['creator', 'id'] }],
})

/** The part of a payout that came from one billing cycle. The lines of a payout add up to its amount. */
export const PayoutLine = defineEntity({
  name: 'PayoutLine',
  tableName: 'payout_lines',
  properties: {
    payout: () => refersTo(Payout).primary(),
    billing_cycle: () => refersTo(BillingCycle).primary(),
    merchant: () => refersTo(User),
    amount: paisa(),
  },
  checks: [{ name: 'payout_lines_amount_check', expression: 'amount > 0' }],
  indexes: [{ name: 'payout_lines_merchant', properties: ['merchant', 'payout'] }],
})
