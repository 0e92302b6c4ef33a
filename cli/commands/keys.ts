import type { Command } from 'commander'
import { addGroup, exampleText, lazy } from '../command.ts'

const actions = lazy(() => import('./keys.actions.ts'))

export function addKeyCommands(program: Command): void {
  const group = addGroup(program, 'keys', 'the key that protects secrets at rest: rotate it')
  group
    .command('rotate')
    .description(
      'retire former keys for the journal, and seal webhook secrets and bank accounts with APP_KEY; the service may run meanwhile',
    )
    .option('--dry-run', 'only count what it would seal')
    .addHelpText(
      'after',
      `
To replace the key:
  1. Add the new key to APP_KEYS_FORMER of every process, and restart them one after the other.
  2. Set APP_KEY to the new key and APP_KEYS_FORMER to the former one, for every process, and restart them.
  3. When every process has the new APP_KEY, run "affiliate keys rotate". It can be interrupted and run again.
     It seals the journal and retires the former key first: what is written to the journal with that key is refused.
  4. Keep the former key in APP_KEYS_FORMER. The journal keeps the entries that were made with it, and
     "affiliate ledger verify" cannot check them without it.
Without step 1, deliveries get 503 and payouts wait while some processes lack the new key; both are tried again.
${exampleText('keys rotate --dry-run', 'keys rotate --json')}`,
    )
<<<<<<< HEAD
    .action((options: { dryRun?: boolean }, command: Command) => rotate(options.dryRun ?? false, command))
}

function rotate(dryRun: boolean, command: Command): Promise<void> {
  const work = async ({ app, out }: CommandContext & { app: App }) => {
    const { rotateKeys } = await import('../../server/jobs/rotate-keys.ts')
    const { OPERATOR } = await import('../../server/flags/audit.service.ts')
    const onProgress = (table: string, rows: number) => out.progress(`${table}: ${rows} rows`)
    const rotation = await rotateKeys(app.platform, { dryRun, actor: OPERATOR, onProgress })
    out.endProgress()
    const formerNeeded = rotation.left.some((row) => row.keyMissing)
    const former = app.platform.keys.former.length > 0
    out.show(documentOf(rotation, dryRun), () => linesOf(out, rotation, { dryRun, former }))
    if (rotation.left.length === 0) return
    throw new Failure(
      formerNeeded
        ? 'Some rows were sealed with a key that is missing: add it to APP_KEYS_FORMER and run this again.'
        : 'Some rows do not open. They are refused wherever they are used: put them back from a backup, or have their owners give them again.',
      { lines: rotation.left.map(({ table, id, problem }) => printable(`  ${table} ${id}: ${problem}`)) },
    )
  }
  return withApp(command, work, { readOnly: dryRun })
}

function linesOf(
  out: Output,
  { keyId, retired, tables }: Rotation,
  { dryRun, former }: { dryRun: boolean; former: boolean },
): string[] {
  const table = out.table(
    [
      { title: 'Table' },
      { title: 'Rows', right: true },
      { title: dryRun ? 'To re-encrypt' : 'Re-encrypted', right: true },
    ],
    tables.map((one) => [one.table, String(one.rows), String(one.resealed)]),
  )
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
=======
    .action(actions.rotate)
>>>>>>> main
}
