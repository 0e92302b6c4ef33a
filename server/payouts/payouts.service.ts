import type { PayoutWire } from '../../shared/schemas/payouts.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { type RecordFilter, recordsOf } from '../processor/attempts.service.ts'
import { type RetryableCall, type RetryRequest, retryCall } from '../processor/operator-retry.service.ts'
import type { Processor } from '../processor/processor.ts'
import type { OurRecord } from '../processor/records.rule.ts'
import { destinationsInForce, missingDestinations } from '../users/sealed-accounts.service.ts'
import { peopleOf } from '../users/users.service.ts'
import { wireCreator, wirePart, wirePayout } from './payout-wire.ts'
import {
  countPayouts,
  findPayout,
  findPayoutParts,
  findPayouts,
  findPayoutsToCompare,
  lockPayout,
  type PayoutFilter,
  type PayoutPart,
  type PayoutRow,
} from './payouts.store.ts'

export {
  findPayout as getPayout,
  findPayoutByProcessorId as payoutByProcessorId,
  findPayouts as listPayouts,
  linesOf as payoutLines,
  type PayoutPart,
  type PayoutRow,
  payoutsOfShare as sharePayouts,
} from './payouts.store.ts'

/** The payouts with money from one merchant's cycles, newest first. */
export async function listPayoutParts(
  { database: { reader } }: Platform,
  merchantId: string,
  filter: PayoutFilter,
): Promise<PayoutPart[]> {
  return withCreators(reader, await findPayoutParts(reader, merchantId, filter))
}

async function withCreators<Row extends PayoutRow>(db: Queries, rows: readonly Row[]) {
  const creatorIds = rows.map((row) => row.creator_id)
  const people = await peopleOf(db, creatorIds)
  return rows.map((row) => ({ ...row, creatorName: people.get(row.creator_id)?.display_name ?? '' }))
}

/** Payouts to compare with the processor's records, by id. */
export async function payoutRecords(db: Queries, filter: RecordFilter, after: string, limit: number) {
  return recordsOf(db, 'payout', (await findPayoutsToCompare(db, filter, after, limit)).map(recordOf))
}

export async function payoutRecord(db: Queries, payoutId: string): Promise<OurRecord | null> {
  const row = await findPayout(db, payoutId)
  const [record = null] = row ? await recordsOf(db, 'payout', [recordOf(row)]) : []
  return record
}

function recordOf({ id, amount, state, processor_payout_id: processorId }: PayoutRow) {
  const settled = state === 'submitted' ? ('open' as const) : state
  return { id, amount, processorId, standing: settled === 'pending' ? null : settled }
}

/** Payouts for an export. `all` shows whole payouts with their creator; a merchant sees the parts from own cycles. */
export function scanPayouts(platform: Platform, scope: ScanScope): KeysetScan<PayoutWire> {
  return {
    count: (step) => countPayouts(platform.database.reader, scope, step),
    async read(step) {
      const { reader } = platform.database
      const filter = { state: null, before: step.below, limit: step.size }
      if (scope === 'all') {
        const rows = await withCreators(reader, await findPayouts(reader, null, filter))
        return pageItems(step, rows, (row) => ({ ...wirePayout(row), creator: wireCreator(row) }))
      }
      if ('merchantId' in scope) {
        return pageItems(step, await listPayoutParts(platform, scope.merchantId, filter), wirePart)
      }
      return pageItems(step, await findPayouts(reader, scope.creatorId, filter), wirePayout)
    },
  }
}

/**
 * Sends a payout again after the processor has finally refused it, to the destination in force now; see `retryCall`. Also throws
 * `conflict` without such a destination.
 */
export async function retryPayout(
  platform: Platform,
  processor: Processor,
  { payoutId, ...by }: RetryRequest & { payoutId: string },
) {
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
  }
  const retried = await retryCall(platform, processor, call, payoutId, by)
  const { request, formerRequest } = retried
  return { ...retried, newDestination: request.destination_id !== formerRequest.destination_id }
}

function assertPending(id: string, payout: PayoutRow | undefined): asserts payout is PayoutRow {
  if (!payout) throw payoutNotFound(id)
  if (payout.state === 'failed') {
    throw new Refusal(
      'conflict',
      'This payout failed and its amount is back in the balance. The next payout run creates a new one.',
    )
  }
  if (payout.state !== 'pending') throw new Refusal('conflict', `This payout is ${payout.state}.`)
}

export function payoutNotFound(id: string): Refusal {
  return new Refusal('not_found', `Payout ${id} not found.`)
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
