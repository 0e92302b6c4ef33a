import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries } from '../platform/database/database.ts'
import { headProblem, keyOf, pageOfRows, stateOf } from '../platform/database/protected-rows.ts'
import { DIGESTED_TABLES, type Digested } from '../platform/database/protected-tables.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'

const PAGE = 500

const WORDS = {
  changed: 'was changed outside of the service',
  unknown_key: 'was digested with a key that is not in APP_KEY or APP_KEYS_FORMER: add it there',
}

/** Two for each table with digests: its rows are as the service wrote them, and none is missing or an older one. */
export const PROTECTED_INVARIANTS: Invariant[] = (Object.keys(DIGESTED_TABLES) as Digested[]).flatMap(
  (table) => {
    const authentic: Invariant = {
      name: `rows-authentic-${table.replaceAll('_', '-')}`,
      statement: `Each row of ${table} has the keyed digest of what it says.`,
      table,
      breaches: (db, keys) => findChanged(db, keys, table),
    }
    const complete: Invariant = {
      name: `rows-complete-${table.replaceAll('_', '-')}`,
      statement: `${table} holds all rows that the service wrote, in their latest form, and no others.`,
      table,
      async breaches(db, keys) {
        const problem = await headProblem(db, keys, table)
        return problem === null ? [] : [{ subject: table, detail: problem }]
      },
    }
    return DIGESTED_TABLES[table].counted ? [authentic, complete] : [authentic]
  },
)

function findChanged(db: Queries, keys: AppKeys, table: Digested): Promise<Breach[]> {
  return inPages(
    async (after: readonly unknown[] | null) => (await pageOfRows(db, table, after, PAGE)).rows,
    (row) => DIGESTED_TABLES[table].key.map((column) => row[column]),
    (page) =>
      page.flatMap((row) => {
        const state = stateOf(keys, table, row)
        return state === 'holds' ? [] : [{ subject: `${table} ${keyOf(table, row)}`, detail: WORDS[state] }]
      }),
  )
}
