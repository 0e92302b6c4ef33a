import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import type { Paisa } from '../../../shared/money.ts'
import { inList } from '../../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../../platform/database/database.ts'
import { insertRowsIfNew } from '../../platform/database/protected-rows.ts'
import type { Schema } from '../../platform/database/schema.ts'
import { isId } from '../../platform/ids.ts'
import type { AttemptKind } from '../attempt.entity.ts'

export type TransferRow = Selectable<Schema['manual_transfers']>

export interface NewTransfer {
  /** The attempt, so that a repeated call adds none. */
  id: string
  kind: AttemptKind
  /** The billing cycle or the payout, which has one transfer at most. */
  subject_id: string
  number: string
  amount: Paisa
  /** Epoch ms. */
  created_at: number
}

/** Adds a transfer, unless there is one of the same attempt or subject. Returns whether the attempt has one. */
export async function insertTransfer(tx: Tx, transfer: NewTransfer): Promise<boolean> {
  await insertRowsIfNew(tx, 'manual_transfers', [{ ...transfer, state: 'open' }])
  return (await transfersWhere(tx, sql<SqlBool>`id = ${transfer.id}`)).length > 0
}

/** The transfers that meet a condition, oldest first. */
export function transfersWhere(db: Queries, condition: RawBuilder<SqlBool>): Promise<TransferRow[]> {
  return db.selectFrom('manual_transfers').selectAll().where(condition).orderBy('id').execute()
}

/** A condition: the transfers with these numbers, or of these billing cycles and payouts. */
export function named(db: Queries, names: readonly string[]) {
  const ids = names.filter(isId)
  const numbers = names.filter((name) => !isId(name))
  const dialect = dialectOf(db)
  return sql<SqlBool>`(subject_id ${inList(dialect, 'uuid', ids)} or number ${inList(dialect, 'text', numbers)})`
}

/** The transfers with these numbers, or of these billing cycles and payouts. */
export function transfersNamed(db: Queries, names: readonly string[]): Promise<TransferRow[]> {
  return transfersWhere(db, named(db, names))
}

/** Those with one of these references of the bank. */
export async function transfersByReference(
  db: Queries,
  references: readonly string[],
): Promise<TransferRow[]> {
  if (references.length === 0) return []
  return transfersWhere(db, sql<SqlBool>`bank_reference ${inList(dialectOf(db), 'text', references)}`)
}

/** Those that wait for their outcome, the oldest first; payouts that were not exported before the others. */
export function openTransfers(db: Queries, kind: AttemptKind, limit: number): Promise<TransferRow[]> {
  const open = db
    .selectFrom('manual_transfers')
    .selectAll()
    .where('kind', '=', kind)
    .where('state', '=', 'open')
  return open.orderBy(sql`file is not null`).orderBy('id').limit(limit).execute()
}

/** How many there are and their amounts together, by kind, and by whether they stand in a payout file. */
export function sumOpenTransfers(db: Queries) {
  return db
    .selectFrom('manual_transfers')
    .select(['kind', sql<number>`case when file is null then 0 else 1 end`.as('exported')])
    .select((eb) => [eb.fn.countAll<number>().as('count'), eb.fn.sum<number>('amount').as('amount')])
    .where('state', '=', 'open')
    .groupBy(['kind', 'exported'])
    .execute()
}
