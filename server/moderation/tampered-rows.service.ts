import type { TamperedRow } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { openFlags, raiseFlag } from './flags.service.ts'

const reporting = new Set<string>()

/** Flags a row that was changed outside of the service, once. A failure is logged. */
export async function reportTamperedRow(
  platform: Platform,
  { table, key, message }: TamperedRow,
): Promise<void> {
  const subjectId = `${table}/${key}`
  if (reporting.has(subjectId)) return
  reporting.add(subjectId)
  try {
    if ((await openFlags(platform.database.reader, 'integrity_violation', subjectId)).length > 0) return
    platform.log.error({ table, key }, 'a tampered row was refused')
    await platform.database.transaction((tx) =>
      raiseFlag(platform, tx, {
        kind: 'integrity_violation',
        subjectType: 'row',
        subjectId,
        summary:
          'A row was changed in the database, not by the service, and is refused wherever it is used. Run "affiliate ledger verify", and put the row back from a backup.',
        evidence: { table, row: key, problem: message },
      }),
    )
  } catch (error) {
    platform.log.error({ err: error }, 'a tampered row was not flagged')
  } finally {
    reporting.delete(subjectId)
  }
}
