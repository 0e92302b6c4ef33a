import { type ExpressionBuilder, sql } from 'kysely'
import type { Queries } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export interface UnpaidCycle {
  id: string
  merchant_id: string
  /** Paisa. */
  amount_due: number
  processor_invoice_id: string | null
  /** Epoch ms. */
  closed_at: number | null
  /** When a flag of this kind about it was last resolved. */
  resolved_at: number | null
}

/**
 * Closed cycles that were closed before a moment (epoch ms) and have no open flag of this kind, oldest first. `closed` stands
 * as a literal in the statement: SQLite takes a partial index for no bound value.
 */
export function cyclesClosedBefore(db: Queries, before: number, kind: string): Promise<UnpaidCycle[]> {
  return db
    .selectFrom('billing_cycles')
    .select((eb) => [
      'id',
      'merchant_id',
      'amount_due',
      'processor_invoice_id',
      'closed_at',
      flagsAbout(eb, kind)
        .select((flag) => flag.fn.max('resolved_at').as('resolved_at'))
        .as('resolved_at'),
    ])
    .where('state', '=', sql.lit('closed'))
    .where('closed_at', '<=', before)
    .where((eb) =>
      eb.not(eb.exists(flagsAbout(eb, kind).select('flags.id').where('flags.status', '=', 'open'))),
    )
    .orderBy('closed_at')
    .execute()
}

function flagsAbout(eb: ExpressionBuilder<Schema, 'billing_cycles'>, kind: string) {
  return eb
    .selectFrom('flags')
    .where('flags.kind', '=', kind)
    .where('flags.subject_id', '=', sql<string>`cast(billing_cycles.id as text)`)
}

/** Which of these cycles are charged. */
export async function chargedAmong(db: Queries, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('billing_cycles')
    .select('id')
    .where('id', 'in', ids)
    .where('state', '=', 'charged')
    .execute()
  return rows.map((row) => row.id)
}
