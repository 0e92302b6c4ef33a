import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./keys.actions.ts'))

export function addKeyCommands(program: CliCommand): void {
  const group = program.subcommand('keys', 'the key that protects secrets at rest: rotate it')
  group
    .subcommand(
      'rotate',
      'retire former keys for the journal, and seal webhook secrets and bank accounts with APP_KEY; the service may run meanwhile',
    )
    .option('--dry-run', 'only count what it would seal')
    .remarks(`To replace the key:
  1. Add the new key to APP_KEYS_FORMER of every process, and restart them one after the other.
  2. Set APP_KEY to the new key and APP_KEYS_FORMER to the former one, for every process, and restart them.
  3. When every process has the new APP_KEY, run "affiliate keys rotate". It can be interrupted and run again.
     It seals the journal and retires the former key first: what is written to the journal with that key is refused.
  4. Keep the former key in APP_KEYS_FORMER. The journal keeps the entries that were made with it, and
     "affiliate ledger verify" cannot check them without it.
Without step 1, deliveries get 503 and payouts wait while some processes lack the new key; both are tried again.`)
    .examples('keys rotate --dry-run', 'keys rotate --json')
    .action(actions.rotate)
}
