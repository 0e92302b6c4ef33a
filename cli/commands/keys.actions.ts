import { OPERATOR } from '../../server/flags/audit.service.ts'
import { type Rotation, rotateKeys } from '../../server/jobs/rotate-keys.ts'
import { writes } from '../context.ts'
import { Failure } from '../failures.ts'
import { wireNames } from '../terminal/output.ts'
import { printable } from '../terminal/printable-text.ts'

export const rotate = writes(async ({ platform, out }, { dryRun = false }: { dryRun?: boolean }) => {
  const onProgress = (table: string, rows: number) => out.progress(`${table}: ${rows} rows`)
  const rotation = await rotateKeys(platform, { dryRun, actor: OPERATOR, onProgress })
  const { keyId, retired, tables, left } = rotation
  const items = left.map((row) => wireNames({ ...row }))
  out.show({ dry_run: dryRun, key_id: keyId, retired_keys: retired, tables, left: items }, () => [
    ...out.table(tables, [
      { title: 'Table', cell: (one) => one.table },
      { title: 'Rows', right: true, cell: (one) => one.rows },
      { title: dryRun ? 'To re-encrypt' : 'Re-encrypted', right: true, cell: (one) => one.resealed },
    ]),
    ...(dryRun ? previewLines(rotation) : resultLines(rotation, platform.keys.former.length > 0)),
  ])
  if (left.length === 0) return
  throw new Failure(
    left.some((row) => row.keyMissing)
      ? 'Some rows were sealed with a key that is missing: add it to APP_KEYS_FORMER and run this again.'
      : 'Some rows do not open. They are refused wherever they are used: put them back from a backup, or have their owners give them again.',
    { lines: left.map(({ table, id, problem }) => printable(`  ${table} ${id}: ${problem}`)) },
  )
})

function previewLines({ retired }: Rotation): string[] {
  return [...retired.map((id) => `Former key ${id} would be retired.`), 'Nothing was written.']
}

function resultLines({ keyId, retired }: Rotation, hasFormer: boolean): string[] {
  const keep =
    'Keep the former keys in APP_KEYS_FORMER: "affiliate ledger verify" needs them for the journal entries that they made.'
  return [
    ...retired.map(
      (id) => `Former key ${id} is retired: the journal takes nothing more that is made with it.`,
    ),
    `Every row that opens is sealed with key ${keyId}.`,
    ...(hasFormer ? [keep] : []),
  ]
}
