import type { AttemptKind } from '../attempt.entity.ts'
import type { RecordStatus } from '../records.rule.ts'

/**
 * What Safepay's status of a payment request (`invoice`) or payout means. Any other status is `unclear`, also that of money that came back
 * in whole or in part (P_REVERSED, P_REFUNDED), so that nothing is sent again before a person has looked.
 */
const MEANINGS = new Map<string, Record<AttemptKind, RecordStatus>>(
  Object.entries({
    P_INITIATED: { invoice: 'open', payout: 'open' },
    P_RECEIVED: { invoice: 'open', payout: 'open' },
    P_AUTHORIZED: { invoice: 'open', payout: 'open' },
    P_CAPTURED: { invoice: 'paid', payout: 'open' },
    P_SETTLED: { invoice: 'paid', payout: 'paid' },
    P_FAILED: { invoice: 'failed', payout: 'failed' },
    P_REJECTED: { invoice: 'failed', payout: 'failed' },
    P_CANCELLED: { invoice: 'failed', payout: 'failed' },
  }),
)

export function statusMeaning(kind: AttemptKind, status: string): RecordStatus {
  return MEANINGS.get(status)?.[kind] ?? 'unclear'
}

const OUTCOMES = { open: 'created', paid: 'created', failed: 'refused', unclear: 'unknown' } as const

/** The outcome of a call that was answered with 200 and this status. An `unknown` one is looked up before the next try. */
export function outcomeOfStatus(kind: AttemptKind, status: string): 'created' | 'refused' | 'unknown' {
  return OUTCOMES[statusMeaning(kind, status)]
}
