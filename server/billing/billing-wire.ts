import { formatMoney } from '../../shared/money.ts'
import type { BillingCycleWire } from '../../shared/schemas/billing.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import type { CycleRow } from './billing.store.ts'

/** A billing cycle as its merchant sees it. */
export function wireCycle({ config }: Pick<Platform, 'config'>, row: CycleRow): BillingCycleWire {
  const isPayable = row.state === 'closed' && config.PROCESSOR === 'manual'
  return {
    id: row.id,
    state: row.state,
    period_start: isoTime(row.period_start),
    period_end: isoTime(row.period_end),
    commission_total: formatMoney(row.commission_total),
    fee_total: formatMoney(row.fee_total),
    credit_total: formatMoney(row.credit_total),
    amount_due: formatMoney(row.amount_due),
    currency: 'PKR',
    processor_invoice_id: row.processor_invoice_id,
    processor_payment_reference: row.processor_payment_reference,
    payment_url: row.payment_url,
    payment_instructions: isPayable ? (config.MANUAL_PAYMENT_INSTRUCTIONS ?? null) : null,
    closed_at: row.closed_at === null ? null : isoTime(row.closed_at),
    charged_at: row.charged_at === null ? null : isoTime(row.charged_at),
  }
}
