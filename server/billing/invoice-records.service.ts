import type { Queries } from '../platform/database.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import type { OurRecord, Standing } from '../processor/reconcile.rule.ts'
import { type InvoiceRow, type RecordFilter, readInvoice, readInvoices } from './invoice-records.store.ts'

export type { RecordFilter } from './invoice-records.store.ts'

/** Closed and charged cycles as the processor should know them, in the order of their ids. */
export async function invoiceRecords(
  db: Queries,
  filter: RecordFilter,
  after: string,
  limit: number,
): Promise<OurRecord[]> {
  const records: OurRecord[] = []
  for (const row of await readInvoices(db, filter, after, limit)) records.push(await recordOf(db, row))
  return records
}

export async function invoiceRecord(db: Queries, cycleId: string): Promise<OurRecord | null> {
  const row = await readInvoice(db, cycleId)
  return row ? recordOf(db, row) : null
}

async function recordOf(db: Queries, row: InvoiceRow): Promise<OurRecord> {
  return {
    kind: 'invoice',
    id: row.id,
    standing: await standingOf(db, row),
    amount: row.amount_due,
    processorId: row.processor_invoice_id,
  }
}

async function standingOf(db: Queries, row: InvoiceRow): Promise<Standing> {
  if (row.state === 'charged') return 'paid'
  if (row.processor_invoice_id !== null) return 'open'
  const attempt = (await listAttempts(db, 'invoice', row.id)).at(-1)
  return attempt?.state === 'refused' ? 'refused' : 'unsent'
}
