import type { Queries } from '../platform/database.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import type { OurRecord, Standing } from '../processor/reconcile.rule.ts'
import { type PayoutRecordRow, readPayout, readPayouts } from './payout-records.store.ts'

/** Payouts as the processor should know them, in the order of their ids. */
export async function payoutRecords(
  db: Queries,
  filter: Parameters<typeof readPayouts>[1],
  after: string,
  limit: number,
): Promise<OurRecord[]> {
  const records: OurRecord[] = []
  for (const row of await readPayouts(db, filter, after, limit)) records.push(await recordOf(db, row))
  return records
}

export async function payoutRecord(db: Queries, payoutId: string): Promise<OurRecord | null> {
  const row = await readPayout(db, payoutId)
  return row ? recordOf(db, row) : null
}

async function recordOf(db: Queries, row: PayoutRecordRow): Promise<OurRecord> {
  return {
    kind: 'payout',
    id: row.id,
    standing: await standingOf(db, row),
    amount: row.amount,
    processorId: row.processor_payout_id,
  }
}

async function standingOf(db: Queries, row: PayoutRecordRow): Promise<Standing> {
  if (row.state === 'submitted') return 'open'
  if (row.state !== 'pending') return row.state
  const attempt = (await listAttempts(db, 'payout', row.id)).at(-1)
  return attempt?.state === 'refused' ? 'refused' : 'unsent'
}
