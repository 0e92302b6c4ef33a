import { defineEntity } from '@mikro-orm/core'
import { BillingCycle } from '../billing/billing.entity.ts'
import { enumText, epochMs, id, oneOf, paisa, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'
import { PAYOUT_STATES, type PayoutState } from './payout-eligibility.rule.ts'

export const Payout = defineEntity({
  name: 'Payout',
  tableName: 'payouts',
  properties: {
    id: id().primary(),
    creator_id: () => refersTo(User, 'creator_id'),
    state: enumText<PayoutState>(),
    amount: paisa(),
    processor_payout_id: text().strictNullable(),
    failure_reason: text().strictNullable(),
    created_at: epochMs(),
    submitted_at: epochMs().strictNullable(),
    settled_at: epochMs().strictNullable(),
  },
  checks: [
    oneOf('payouts', 'state', PAYOUT_STATES),
    { name: 'payouts_amount_check', expression: 'amount > 0' },
  ],
  uniques: [{ name: 'payouts_processor', properties: ['processor_payout_id'] }],
  indexes: [{ name: 'payouts_creator', properties: ['creator_id', 'id'] }],
})

/** The part of a payout that came from one billing cycle. The lines of a payout add up to its amount. */
export const PayoutLine = defineEntity({
  name: 'PayoutLine',
  tableName: 'payout_lines',
  properties: {
    payout_id: () => refersTo(Payout, 'payout_id').primary(),
    billing_cycle_id: () => refersTo(BillingCycle, 'billing_cycle_id').primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    amount: paisa(),
  },
  checks: [{ name: 'payout_lines_amount_check', expression: 'amount > 0' }],
  indexes: [{ name: 'payout_lines_merchant', properties: ['merchant_id', 'payout_id'] }],
})
