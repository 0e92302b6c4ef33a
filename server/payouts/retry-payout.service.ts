import { recordAudit } from '../moderation/audit.service.ts'
import { closeFlag } from '../moderation/flag-queue.service.ts'
import type { Queries } from '../platform/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { listAttempts, queueAttempt } from '../processor/attempts.service.ts'
import type { LookupOutcome, Processor } from '../processor/port.ts'
import { decideSecondAttempt } from '../processor/second-attempt.rule.ts'
import { destinationsInForce } from '../users/payout-destinations.service.ts'
import { findPayout, lockPayout, type PayoutRow } from './payouts.store.ts'

export interface PayoutRetry {
  payoutId: string
  /** A user's id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

export interface RetriedPayout {
  payout: PayoutRow
  attemptId: string
  /** The payout that the processor holds under this reference already, which is taken over. */
  adopts: string | null
  /** Whether it goes to another account than the refused attempt did. */
  newDestination: boolean
}

/**
 * Has a payout sent anew after the processor has finally refused it: looked up first, then a new attempt with a new key
 * and the destination that is in force now. Refuses with `not_found`, `conflict` (there is nothing to send anew, no
 * destination, or the processor holds something else) and `unavailable` (it cannot be asked).
 */
export async function retryPayout(
  platform: Platform,
  processor: Processor,
  retry: PayoutRetry,
): Promise<RetriedPayout> {
  const { payoutId, actor, reason } = retry
  const { reader, dialect } = platform.database
  const found = isId(payoutId) ? await findPayout(reader, payoutId) : undefined
  await judge(platform, reader, payoutId, found, null)
  const lookup = await processor.findPayouts(payoutId)
  return platform.database.transaction(async (tx) => {
    const locked = await lockPayout(tx, dialect, payoutId)
    const { payout, adopts, refused, destinationId } = await judge(platform, tx, payoutId, locked, lookup)
    const attemptId = await queueAttempt(platform, tx, {
      kind: 'payout',
      subjectId: payout.id,
      amount: payout.amount,
      request: { destination_id: destinationId },
      lookUpFirst: true,
    })
    const subject = { kind: 'processor_refusal', subjectType: 'payout', subjectId: payout.id } as const
    await closeFlag(platform, tx, subject, 'The payout was sent anew.')
    const formerDestination = destinationOf(refused?.request)
    await recordAudit(platform, tx, {
      actor,
      action: 'payout.retry',
      subjectType: 'payout',
      subjectId: payout.id,
      reason,
      before: {
        attempt_id: refused?.id ?? null,
        refused_because: refused?.detail ?? null,
        destination_id: formerDestination,
      },
      after: { attempt_id: attemptId, destination_id: destinationId, payout_at_the_processor: adopts },
    })
    return { payout, attemptId, adopts, newDestination: destinationId !== formerDestination }
  })
}

async function judge(
  platform: Platform,
  db: Queries,
  id: string,
  payout: PayoutRow | undefined,
  lookup: LookupOutcome | null,
) {
  if (!payout) throw new Refusal('not_found', `There is no payout ${id}.`)
  if (payout.state === 'failed') {
    throw new Refusal(
      'conflict',
      'This payout failed and its amount is in the balance again: the next payout run makes a new one.',
    )
  }
  if (payout.state !== 'pending') throw new Refusal('conflict', `This payout is ${payout.state}.`)
  const attempts = await listAttempts(db, 'payout', payout.id)
  const states = attempts.map((attempt) => attempt.state)
  const decision = decideSecondAttempt({ attempts: states, amount: payout.amount, lookup })
  if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
  const inForce = await destinationsInForce(db, [payout.creator_id], platform.clock.now())
  const destination = inForce.get(payout.creator_id)
  if (!destination) throw new Refusal('conflict', 'The creator has no payout destination in force.')
  return { payout, adopts: decision.adopts, refused: attempts.at(-1), destinationId: destination.id }
}

function destinationOf(request: string | undefined): string | null {
  if (request === undefined) return null
  return (JSON.parse(request) as { destination_id?: string }).destination_id ?? null
}
