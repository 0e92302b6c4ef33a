import { type RawBuilder, sql } from 'kysely'

/** A change behind the services' back that one invariant (at least) must report. */
export interface Tampering {
  invariant: string
  what: string
  statement: RawBuilder<unknown>
  /** Selects, before the change, a `subject` that the report must contain. */
  subject: RawBuilder<unknown>
}

export const NO_USER = '01900000-0000-7000-8000-000000000001'
export const NEW_ID = sql.lit(NO_USER)

/** One row of a table by a condition, the same one on every run. */
export function one(table: string, condition: string): RawBuilder<unknown> {
  return sql`(select min(cast(id as text)) from ${sql.table(table)} where ${sql.raw(condition)})`
}

export function oneOf(table: string, condition: string): RawBuilder<unknown> {
  return sql`select ${one(table, condition)} as subject`
}

export function change(table: string, assignment: string, condition: string): RawBuilder<unknown> {
  return sql`update ${sql.table(table)} set ${sql.raw(assignment)}
    where cast(id as text) = ${one(table, condition)}`
}

type Change = readonly [invariant: string, what: string, assignment: string, condition?: string]

/** Changes of the first row of a table that fits the condition, which the report must name by its `key`. */
export function changes(table: string, rows: readonly Change[], key = 'id'): Tampering[] {
  return rows.map(([invariant, what, assignment, condition = 'true']) => {
    const first = sql`(select min(cast(${sql.id(key)} as text)) from ${sql.table(table)} where ${sql.raw(condition)})`
    return {
      invariant,
      what,
      statement: sql`update ${sql.table(table)} set ${sql.raw(assignment)} where cast(${sql.id(key)} as text) = ${first}`,
      subject: sql`select ${first} as subject`,
    }
  })
}

export const entryOf = (kind: string) => `kind = '${kind}'`

/** One posting of the first entry of a kind, which the report must name by `subject` of the entry. */
export function posting(
  invariant: string,
  what: string,
  assignment: string,
  of: { kind: string; account: string; subject?: string },
): Tampering {
  const entry = one('ledger_entries', entryOf(of.kind))
  return {
    invariant,
    what,
    statement: sql`update ledger_postings set ${sql.raw(assignment)}
      where cast(entry_id as text) = ${entry} and account = ${sql.lit(of.account)}`,
    subject: sql`select cast(${sql.raw(of.subject ?? 'id')} as text) as subject from ledger_entries
      where cast(id as text) = ${entry}`,
  }
}
