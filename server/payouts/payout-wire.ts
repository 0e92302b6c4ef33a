import { formatMoney } from '../../shared/money.ts'
import type { PayoutWire } from '../../shared/schemas/payouts.ts'
import { isoTime } from '../platform/clock.ts'
import type { PayoutPart, PayoutRow } from './payouts.store.ts'

function common(row: PayoutRow) {
  return {
    id: row.id,
    state: row.state,
    currency: 'PKR' as const,
    created_at: isoTime(row.created_at),
    settled_at: row.settled_at === null ? null : isoTime(row.settled_at),
  }
}

/** A payout as its creator sees it. */
export function wirePayout(row: PayoutRow): PayoutWire {
  return {
    ...common(row),
    amount: formatMoney(row.amount),
    processor_payout_id: row.processor_payout_id,
    failure_reason: row.failure_reason,
  }
}

/** A payout as a merchant sees it: the part that came from own billing cycles. */
export function wirePart(part: PayoutPart): PayoutWire {
  return {
    ...common(part),
    amount: formatMoney(part.part),
    creator: wireCreator(part),
  }
}

export function wireCreator(row: Pick<PayoutPart, 'creator_id' | 'creatorName'>) {
  return { id: row.creator_id, display_name: row.creatorName }
}
