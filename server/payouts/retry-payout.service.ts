import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { Processor } from '../processor/processor.ts'
import { type Retried, type RetryableCall, type RetryRequest, retryCall } from '../processor/retry.service.ts'
import { destinationsInForce, missingDestinations } from '../users/sealed-accounts.service.ts'
import { findPayout, lockPayout, type PayoutRow } from './payouts.store.ts'

export interface RetriedPayout extends Retried<PayoutRow> {
  /** Whether it goes to another account than the refused attempt did. */
  newDestination: boolean
}

/**
 * Sends a payout again after the processor has finally refused it, to the destination in force now; see `retryCall`. Also throws
 * `conflict` without such a destination.
 */
export async function retryPayout(
  platform: Platform,
  processor: Processor,
  { payoutId, ...by }: RetryRequest & { payoutId: string },
): Promise<RetriedPayout> {
  const call: RetryableCall<PayoutRow> = {
    kind: 'payout',
    action: 'payout.retry',
    flagKinds: ['processor_refusal'],
    flagNote: 'The payout was retried.',
    find: findPayout,
    lock: lockPayout,
    assertWaiting: (row) => assertPending(payoutId, row),
    amount: (row) => row.amount,
    request: (db, row) => requestOf(platform, db, row),
    audited: destinationOf,
  }
  const retried = await retryCall(platform, processor, call, payoutId, by)
  const { request, formerRequest } = retried
  return { ...retried, newDestination: request.destination_id !== formerRequest.destination_id }
}

function assertPending(id: string, payout: PayoutRow | undefined): asserts payout is PayoutRow {
  if (!payout) throw new Refusal('not_found', `Payout ${id} not found.`)
  if (payout.state === 'failed') {
    throw new Refusal(
      'conflict',
      'This payout failed and its amount is back in the balance. The next payout run creates a new one.',
    )
  }
  if (payout.state !== 'pending') throw new Refusal('conflict', `This payout is ${payout.state}.`)
}

async function requestOf(platform: Platform, db: Queries, { creator_id }: PayoutRow) {
  if ((await missingDestinations(platform, db)) !== null) {
    throw new Refusal(
      'conflict',
      'Payout destinations were deleted in the database. Run "affiliate ledger verify", and put them back from a backup.',
    )
  }
  const inForce = await destinationsInForce(db, [creator_id], platform.clock.now())
  const destination = inForce.get(creator_id)
  if (!destination) throw new Refusal('conflict', 'The creator has no payout destination in force.')
  return { destination_id: destination.id }
}

function destinationOf({ destination_id }: Record<string, unknown>): { destination_id: unknown } {
  return { destination_id: destination_id ?? null }
}
