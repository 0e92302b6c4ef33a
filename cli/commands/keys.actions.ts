import { OPERATOR } from '../../server/flags/audit.service.ts'
import { type Rotation, rotateKeys } from '../../server/jobs/rotate-keys.ts'
import { writes } from '../context.ts'
import { Failure } from '../failures.ts'
import type { Output } from '../terminal/output.ts'
import { printable } from '../terminal/printable-text.ts'

export const rotate = writes(async ({ platform, out }, { dryRun = false }: { dryRun?: boolean }) => {
  const onProgress = (table: string, rows: number) => out.progress(`${table}: ${rows} rows`)
  const rotation = await rotateKeys(platform, { dryRun, actor: OPERATOR, onProgress })
  out.endProgress()
  const formerNeeded = rotation.left.some((row) => row.keyMissing)
  const former = platform.keys.former.length > 0
  out.show(documentOf(rotation, dryRun), () => linesOf(out, rotation, { dryRun, former }))
  if (rotation.left.length === 0) return
  throw new Failure(
    formerNeeded
      ? 'Some rows were sealed with a key that is missing: add it to APP_KEYS_FORMER and run this again.'
      : 'Some rows do not open. They are refused wherever they are used: put them back from a backup, or have their owners give them again.',
    { lines: rotation.left.map(({ table, id, problem }) => printable(`  ${table} ${id}: ${problem}`)) },
  )
})

function linesOf(
  out: Output,
  { keyId, retired, tables }: Rotation,
  { dryRun, former }: { dryRun: boolean; former: boolean },
): string[] {
  const table = out.table(tables, [
    { title: 'Table', cell: (one) => one.table },
    { title: 'Rows', right: true, cell: (one) => one.rows },
    { title: dryRun ? 'To re-encrypt' : 'Re-encrypted', right: true, cell: (one) => one.resealed },
  ])
  if (dryRun) {
    return [...table, ...retired.map((id) => `Former key ${id} would be retired.`), 'Nothing was written.']
  }
  return [
    ...table,
    ...retired.map(
      (id) => `Former key ${id} is retired: the journal takes nothing more that is made with it.`,
    ),
    `Every row that opens is sealed with key ${keyId}.`,
    ...(former
      ? [
          'Keep the former keys in APP_KEYS_FORMER: "affiliate ledger verify" needs them for the journal entries that they made.',
        ]
      : []),
  ]
}

function documentOf({ keyId, retired, tables, left }: Rotation, dryRun: boolean) {
  return {
    dry_run: dryRun,
    key_id: keyId,
    retired_keys: retired,
    tables,
    left: left.map(({ table, id, problem, keyMissing }) => ({ table, id, problem, key_missing: keyMissing })),
  }
}
