import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries } from '../platform/database/database.ts'
import { headProblem, keyOf, pageOfRows, stateOf } from '../platform/database/protected-rows.ts'
import { DIGESTED_TABLES, type Digested, declarationOf } from '../platform/database/protected-tables.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import type { Scope } from './scope.ts'

const PAGE = 2000

/** Two for each table with digests: its rows are as the service wrote them, and none is missing or an older one. */
export const PROTECTED_INVARIANTS: Invariant[] = (Object.keys(DIGESTED_TABLES) as Digested[]).flatMap(
  (table) => {
    const authentic: Invariant = {
      name: `rows-authentic-${table.replaceAll('_', '-')}`,
      statement: `Each row of ${table} has the keyed digest of what it says.`,
      table,
      breaches: (db, keys, scope) => findChanged(db, keys, table, scope),
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
    return declarationOf(table).counted ? [authentic, complete] : [authentic]
  },
)

/** A key that is missing is reported once, with its first row. */
function findChanged(db: Queries, keys: AppKeys, table: Digested, scope: Scope): Promise<Breach[]> {
  const { key, large } = declarationOf(table)
  const missing = new Set<string>()
  return inPages(
    async (after: Record<string, unknown> | null) => {
      const last = after && key.map((column) => after[column])
      return (await pageOfRows(db, table, last, PAGE, large && scope.isNew('id'))).rows
    },
    (page) =>
      page.flatMap((row) => {
        const state = stateOf(keys, table, row)
        if (state === 'holds') return []
        const subject = `${table} ${keyOf(table, row)}`
        if (state === 'changed') return [{ subject, detail: 'was added or changed outside of the service' }]
        const keyId = String(row.row_digest).slice(0, 8)
        if (missing.has(keyId)) return []
        missing.add(keyId)
        const detail = `rows of ${table}, the first of them ${keyOf(table, row)}, were digested with this key, which is not in APP_KEY or APP_KEYS_FORMER: add it there to verify them; if no APP_KEY had this id, they are forged`
        return [{ subject: `key ${keyId}`, detail }]
      }),
  )
}
