import { defineEntity } from '@mikro-orm/core'
import { count, id, moment, oneOf, paisa, text, word } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

export const BILLING_CYCLE_STATES = ['open', 'closed', 'charged'] as const

export const BillingCycle = defineEntity({
  name: 'BillingCycle',
  tableName: 'billing_cycles',
  properties: {
    id: id().primary(),
    merchant: () => refersTo(User),
    state: word<(typeof BILLING_CYCLE_STATES)[number]>(),
    period_start: moment(),
    period_end: moment(),
    /** Running totals while open, frozen from the close on. */
    sales_count: count(),
    commission_total: paisa(),
    fee_total: paisa(),
    /** The credit really used; what was left over waits for the next cycle. */
    credit_total: paisa(),
    amount_due: paisa(),
    processor_invoice_id: text().nullable(),
    processor_payment_reference: text().nullable(),
    payment_url: text().nullable(),
    created_at: moment(),
    closed_at: moment().nullable(),
    charged_at: moment().nullable(),
  },
  checks: [
    oneOf('billing_cycles', 'state', BILLING_CYCLE_STATES),
    { name: 'billing_cycles_period_check', expression: 'period_start < period_end' },
    {
      name: 'billing_cycles_charged_check',
      expression: "(state = 'charged') = (processor_payment_reference is not null)",
    },
  ],
  uniques: [
    { name: 'billing_cycles_one_open', properties: ['merchant'], where: "state = 'open'" },
    { name: 'billing_cycles_start', properties: ['merchant', 'period_start'] },
    { name: 'billing_cycles_invoice', properties: ['processor_invoice_id'] },
  ],
  indexes: [
    { name: 'billing_cycles_merchant', properties: ['merchant', 'id'] },
    { name: 'billing_cycles_open_end', properties: ['period_end'], where: "state = 'open'" },
    { name: 'billing_cycles_closed', properties: ['closed_at'], where: "state = 'closed'" },
  ],
})

/** What one creator earned in one cycle: runs along with its sales, is released when the cycle is charged. */
export const BillingCycleShare = defineEntity({
  name: 'BillingCycleShare',
  tableName: 'billing_cycle_shares',
  properties: {
    billing_cycle: () => refersTo(BillingCycle).primary(),
    creator: () => refersTo(User).primary(),
    sales_count: count(),
    commission: paisa(),
    /** Set when the cycle is charged. */
    released_at: moment().nullable(),
    /** The payout that carries it; `null` again when that payout fails. */
    payout_id: id().nullable(),
  },
  indexes: [
    {
      name: 'billing_cycle_shares_payable',
      properties: ['creator'],
      where: 'released_at is not null and payout_id is null',
    },
    { name: 'billing_cycle_shares_payout', properties: ['payout_id'] },
  ],
})
