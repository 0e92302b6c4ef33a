import type { TamperedRow } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { openFlags } from './flags.service.ts'
import { flagForgedRows } from './forged-rows.service.ts'

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
