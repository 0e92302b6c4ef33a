import type { PayoutWire } from '../../shared/schemas/payouts.ts'
import type { Queries } from '../platform/database/database.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { type RecordFilter, recordsOf } from '../processor/attempts.service.ts'
import type { OurRecord } from '../processor/records.rule.ts'
import { peopleOf } from '../users/users.service.ts'
import { wireCreator, wirePart, wirePayout } from './payout-wire.ts'
import {
  countPayouts,
  findPayout,
  findPayoutParts,
  findPayouts,
  findPayoutsToCompare,
  type PayoutFilter,
  type PayoutPart,
  type PayoutRow,
} from './payouts.store.ts'

export {
  findPayoutByProcessorId as payoutByProcessorId,
  type PayoutPart,
  type PayoutRow,
  payoutsOfShare as sharePayouts,
} from './payouts.store.ts'

export async function getPayout(platform: Platform, payoutId: string): Promise<PayoutRow | undefined> {
  return findPayout(platform.database.reader, payoutId)
}

/** A creator's payouts, or all for the operator (`creatorId` null), newest first. */
export function listPayouts(
  platform: Platform,
  creatorId: string | null,
  filter: PayoutFilter,
): Promise<PayoutRow[]> {
  return findPayouts(platform.database.reader, creatorId, filter)
}

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
export async function payoutRecords(
  db: Queries,
  filter: RecordFilter,
  after: string,
  limit: number,
): Promise<OurRecord[]> {
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
