import type { Queries } from '../platform/database.ts'
import type { CycleRow } from './billing.store.ts'

/** Which cycles or payouts are compared with the processor's records; all times epoch ms. */
export interface RecordFilter {
  /** Settled ones count from here on; unsettled ones always. */
  since: number
  /** What has moved after this is left for the next time: the processor's word may be on its way. */
  quietSince: number
  /** These count whatever became of them. */
  always: readonly string[]
}

export type InvoiceRow = Pick<CycleRow, 'id' | 'state' | 'amount_due' | 'processor_invoice_id'>

function invoices(db: Queries) {
  return db.selectFrom('billing_cycles').select(['id', 'state', 'amount_due', 'processor_invoice_id'])
}

/** In the order of their ids, from the one behind `after`. */
export function readInvoices(
  db: Queries,
  filter: RecordFilter,
  after: string,
  limit: number,
): Promise<InvoiceRow[]> {
  const { since, quietSince, always } = filter
  return invoices(db)
    .where('id', '>', after)
    .where((where) =>
      where.or([
        where.and([where('state', '=', 'closed'), where('closed_at', '<=', quietSince)]),
        where.and([
          where('state', '=', 'charged'),
          where('charged_at', '>=', since),
          where('charged_at', '<=', quietSince),
        ]),
        ...(always.length > 0 ? [where('id', 'in', always)] : []),
      ]),
    )
    .orderBy('id')
    .limit(limit)
    .execute()
}

export function readInvoice(db: Queries, id: string): Promise<InvoiceRow | undefined> {
  return invoices(db).where('id', '=', id).where('state', '<>', 'open').executeTakeFirst()
}
