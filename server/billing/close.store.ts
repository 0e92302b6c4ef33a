import { sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database.ts'
import { among, rowSet } from '../platform/row-set.ts'
import type { CycleRow } from './billing.store.ts'

/** In the order of their merchants, which is the one in which they are locked too. */
export function findCyclesByIds(db: Queries, cycleIds: readonly string[]): Promise<CycleRow[]> {
  return cyclesByIds(db, cycleIds).execute()
}

/** These cycles whatever has become of them, locked in a fixed order until the transaction ends. */
export function lockCycles(tx: Tx, cycleIds: readonly string[]): Promise<CycleRow[]> {
  return cyclesByIds(tx, cycleIds)
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate())
    .execute()
}

function cyclesByIds(db: Queries, cycleIds: readonly string[]) {
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .where(sql<boolean>`id ${among(dialectOf(db), 'uuid', cycleIds)}`)
    .orderBy('merchant_id')
    .orderBy('id')
}

interface Closing {
  cycle_id: string
  credit_total: number
  amount_due: number
}

const closings = rowSet<Closing>('new', { cycle_id: 'uuid', credit_total: 'bigint', amount_due: 'bigint' })

/** Closes these open cycles at `now` (epoch ms); answers which of them were open. */
export async function closeOpenCycles(
  tx: Tx,
  rows: readonly Closing[],
  now: number,
): Promise<ReadonlySet<string>> {
  const closed = await sql<{ id: string }>`
    update billing_cycles as cycle
    set state = 'closed', credit_total = new.credit_total, amount_due = new.amount_due, closed_at = ${now}
    from ${closings(dialectOf(tx), rows)}
    where cycle.id = new.cycle_id and ${stateOf(tx)} = 'open'
    returning id`.execute(tx)
  return new Set(closed.rows.map((row) => row.id))
}

/** Has these open cycles go on until `periodEnd` (epoch ms); answers which of them were open. */
export async function extendOpenCycles(
  tx: Tx,
  cycleIds: readonly string[],
  periodEnd: number,
): Promise<ReadonlySet<string>> {
  const extended = await sql<{ id: string }>`
    update billing_cycles as cycle set period_end = ${periodEnd}
    where cycle.id ${among(dialectOf(tx), 'uuid', cycleIds)} and ${stateOf(tx)} = 'open'
    returning id`.execute(tx)
  return new Set(extended.rows.map((row) => row.id))
}

/** The plus sign keeps SQLite from looking through all that is open instead of the few ids. */
function stateOf(tx: Tx) {
  return dialectOf(tx) === 'sqlite' ? sql`+cycle.state` : sql`cycle.state`
}
