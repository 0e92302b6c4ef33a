import type { AttemptKind } from '../attempt.entity.ts'
import type { RecordStatus } from '../records.rule.ts'

/**
 * What Safepay's status of a payment request (`invoice`) or payout means. Money that came back in whole or in part is `unclear`, so that
 * nothing is sent again before a person has looked. Any other status is `unclear` too.
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
    P_REVERSED: { invoice: 'unclear', payout: 'unclear' },
    P_REFUNDED: { invoice: 'unclear', payout: 'unclear' },
    P_PARTIALLY_REFUNDED: { invoice: 'unclear', payout: 'unclear' },
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
