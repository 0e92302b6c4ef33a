import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Queries } from '../../platform/database/database.ts'
import { ENTITIES } from '../../schema.ts'

/** Refused deliveries are noted at their stores some time later. */
const NOTED_LATER = ['last_refused_at', 'last_refusal', 'refused_since', 'refused_count']

/** A hash of the whole content of each table, by the table's name. */
export async function tableDigests(db: Queries): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  for (const { tableName } of ENTITIES.map((entity) => entity.meta)) {
    const { rows } = await sql`select * from ${sql.table(tableName)}`.execute(db)
    const content = (key: string, value: unknown) => (NOTED_LATER.includes(key) ? undefined : value)
    const lines = rows.map((row) => JSON.stringify(row, content)).sort()
    digests[tableName] = createHash('sha256').update(lines.join('\n')).digest('hex')
  }
  return digests
}

/** The names of the tables whose content is not what it was. */
export function changedTables(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(after).filter((table) => before[table] !== after[table])
}
