import type { Tx } from '../platform/database/database.ts'
import type { TamperedRow } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { Platform } from '../platform/platform.ts'
import { openFlagAbout, openFlags, raiseFlag } from './flags.service.ts'

/** A row that is not as the service wrote it. */
export interface ForgedRow {
  id: string
  problem: string
}

/** Rows that a flag lists. */
const MOST_LISTED = 10

/** Flags rows that are not as the service wrote them and were refused. The rows of a table share one open flag. */
export async function flagForgedRows(
  platform: Platform,
  tx: Tx,
  table: keyof Schema,
  rows: readonly ForgedRow[],
): Promise<void> {
  const latest = rows.at(-1)
  if (!latest) return
  const subject = { kind: 'integrity_violation', subjectType: 'database_table', subjectId: table } as const
  const open = await openFlagAbout(tx, subject)
  const former = JSON.parse(open?.evidence ?? '{}') as { rows?: number; latest_ids?: string[] }
  const ids = [...rows.map(({ id }) => id).reverse(), ...(former.latest_ids ?? [])]
  await raiseFlag(platform, tx, {
    ...subject,
    summary: `Rows of ${table} were refused, because they are not what this service wrote. Someone may write to the database. Run "affiliate ledger verify --full".`,
    evidence: {
      rows: (former.rows ?? 0) + rows.length,
      latest_ids: [...new Set(ids)].slice(0, MOST_LISTED),
      problem: latest.problem,
    },
  })
}

const reporting = new Set<string>()

/** Flags a protected row that was refused because it was changed outside of the service, once. A failure is logged. */
export async function reportTamperedRow(
  platform: Platform,
  { table, key, message }: TamperedRow,
): Promise<void> {
  const { database, log } = platform
  if (reporting.has(table + key)) return
  reporting.add(table + key)
  try {
    const flags = await openFlags(database.reader, 'integrity_violation', table)
    if (flags.some(({ evidence }) => evidence.includes(JSON.stringify(key)))) return
    log.error({ table, key }, 'a tampered row was refused')
    await database.transaction((tx) => flagForgedRows(platform, tx, table, [{ id: key, problem: message }]))
  } catch (error) {
    log.error({ err: error }, 'a tampered row was not flagged')
  } finally {
    reporting.delete(table + key)
  }
}
