import { defineEntity } from '@mikro-orm/core'
import {
  count,
  enumText,
  epochMs,
  id,
  oneOf,
  paisa,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'
import { CYCLE_STATES, type CycleState } from './close-cycle.rule.ts'

export const BillingCycle = defineEntity({
  name: 'BillingCycle',
  tableName: 'billing_cycles',
  properties: {
    id: id().primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    state: enumText<CycleState>(),
    period_start: epochMs(),
    period_end: epochMs(),
    /** Running totals while the cycle is open; frozen when it closes. */
    sales_count: count(),
    commission_total: paisa(),
    fee_total: paisa(),
    /** The credit that the cycle used. */
    credit_total: paisa(),
    amount_due: paisa(),
    processor_invoice_id: text().strictNullable(),
    processor_payment_reference: text().strictNullable(),
    payment_url: text().strictNullable(),
    created_at: epochMs(),
    closed_at: epochMs().strictNullable(),
    charged_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [
    oneOf('billing_cycles', 'state', CYCLE_STATES),
    { name: 'billing_cycles_period_check', expression: 'period_start < period_end' },
    {
      name: 'billing_cycles_charged_check',
      expression: "(state = 'charged') = (processor_payment_reference is not null)",
    },
  ],
  uniques: [
    { name: 'billing_cycles_one_open', properties: ['merchant_id'], where: "state = 'open'" },
    { name: 'billing_cycles_start', properties: ['merchant_id', 'period_start'] },
    { name: 'billing_cycles_invoice', properties: ['processor_invoice_id'] },
  ],
  indexes: [
    { name: 'billing_cycles_merchant', properties: ['merchant_id', 'id'] },
    { name: 'billing_cycles_open_end', properties: ['period_end'], where: "state = 'open'" },
    { name: 'billing_cycles_closed', properties: ['closed_at'], where: "state = 'closed'" },
  ],
})

/** A creator's earnings in one cycle: a running total while it is open, released when it is charged. */
export const BillingCycleShare = defineEntity({
  name: 'BillingCycleShare',
  tableName: 'billing_cycle_shares',
  properties: {
    billing_cycle_id: () => refersTo(BillingCycle, 'billing_cycle_id').primary(),
    creator_id: () => refersTo(User, 'creator_id').primary(),
    sales_count: count(),
    commission: paisa(),
    /** Set when the cycle is charged. */
    released_at: epochMs().strictNullable(),
    /** The part that is in payouts that have not failed: the sum of their lines. */
    carried: paisa().default(0),
  },
  checks: [
    {
      name: 'billing_cycle_shares_carried_check',
      expression: 'carried >= 0 and carried <= commission and (carried = 0 or released_at is not null)',
    },
  ],
  indexes: [
    {
      name: 'billing_cycle_shares_payable',
      properties: ['creator_id'],
      where: 'released_at is not null and carried < commission',
    },
  ],
})

/** A refund to a merchant, used by later cycles. Granted by an operator and never changed. */
export const Credit = defineEntity({
  name: 'Credit',
  tableName: 'credits',
  properties: {
    id: id().primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    amount: paisa(),
    reference: text().unique(),
    reason: text(),
    /** The flag of the credit request that it answers. */
    request_id: id().strictNullable(),
    created_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [{ name: 'credits_amount_check', expression: 'amount > 0' }],
  uniques: [{ name: 'credits_request', properties: ['request_id'], where: 'request_id is not null' }],
  indexes: [{ name: 'credits_merchant', properties: ['merchant_id'] }],
})
