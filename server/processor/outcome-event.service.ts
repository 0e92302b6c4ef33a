import { raiseFlag } from '../flags/flags.service.ts'
import type { EventOutcome } from '../inbox/inbox.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { AttemptKind } from './attempt.entity.ts'
import { subjectOf } from './attempts.service.ts'
import { decideOutcome, type OutcomeFacts } from './outcome-event.rule.ts'

/** An event about the outcome of an invoice or payout. */
interface ReportedOutcome extends OutcomeFacts {
  kind: AttemptKind
  /** The billing cycle or payout, which the caller has locked. */
  subjectId: string
  state: string
  /** Why the event is flagged when `standing` is `other`. */
  otherOutcome: 'second_reference' | 'contradiction' | 'other_payout_id'
  evidence: Record<string, unknown>
  /** Changes our rows. Returns what the event led to. */
  settle(): Promise<Record<string, unknown>>
}

/** `awaited`: the state that the event needs. `flags`: those for another amount and for another outcome. */
const WORDS = {
  invoice: {
    name: 'billing cycle',
    awaited: 'closed',
    message: 'payment confirmation',
    flags: ['payment_amount_mismatch', 'second_payment_reference'],
  },
  payout: {
    name: 'payout',
    awaited: 'submitted',
    message: 'event',
    flags: ['payout_amount_mismatch', 'payout_contradiction'],
  },
} as const

/** Settles an invoice or payout by an event about it, or raises a flag and changes nothing. */
export async function applyOutcome(
  platform: Platform,
  tx: Tx,
  reported: ReportedOutcome,
): Promise<EventOutcome> {
  const { kind, subjectId, state, otherOutcome, evidence } = reported
  const { name, awaited, message, flags } = WORDS[kind]
  const decision = decideOutcome(reported)
  switch (decision) {
    case 'settle':
      return { kind: 'done', result: await reported.settle() }
    case 'already':
      return { kind: 'ignored', reason: `${name} ${subjectId} is already ${state}` }
    case 'retry_later':
      return { kind: 'retry', reason: `${name} ${subjectId} is not ${awaited} yet` }
    default: {
      const isOther = decision === 'other_outcome'
      const reason = isOther ? otherOutcome : decision
      const summary = `The processor's ${message} does not match our ${name}: ${reason.replaceAll('_', ' ')}.`
      await raiseFlag(platform, tx, {
        kind: flags[isOther ? 1 : 0],
        ...subjectOf(kind, subjectId),
        summary,
        evidence,
      })
      return { kind: 'set_aside', reason, code: 'flagged' }
    }
  }
}
