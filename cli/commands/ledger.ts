import { InvalidArgumentError } from 'commander'
import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./ledger.actions.ts'))
const keyActions = lazy(() => import('./keys.actions.ts'))

function digestOf(text: string): string {
  const digest = text.trim().toLowerCase()
  if (/^(storage|[0-9a-f]{8}\.[0-9a-f]{64})$/.test(digest)) return digest
  throw new InvalidArgumentError(
    'It must be a digest as "affiliate ledger seal" printed it: 8 characters, a dot and 64 more.',
  )
}

/** `ledger` and `keys`. */
export function addLedgerCommands(program: CliCommand): void {
  const group = program.subcommand('ledger', 'the journal: check the books, seal them, show balances')
  group
    .subcommand(
      'verify',
      'check every invariant of the books, for what is new since the last verified seal; exit 1 when a row breaks one',
    )
    .option('--full', 'check all rows, also those that an earlier run has verified')
    .option('--all', 'show each invariant with what was checked, the last seal and the keys')
    .option('--replica', 'with --full: check the replica of DATABASE_READ_URL, and store nothing')
    .option(
      '--against <digest>',
      'check all rows, and compare with the digest of a seal that was kept elsewhere, or with "storage", the seals in SEAL_STORAGE (which every run does where that is set)',
      digestOf,
    )
    .demand(
      'Pass --full with --replica: what is new is checked on the primary.',
      ({ full, replica }) => full || !replica,
    )
    .examples('ledger verify', 'ledger verify --full', `ledger verify --against ${'0123abcd'.repeat(8)}`)
    .action(actions.verify)
  group
    .subcommand('seal', 'seal the journal now, and print the digest to keep elsewhere: on paper, in a mail')
    .examples('ledger seal', 'ledger seal --json')
    .action(actions.seal)
  group
    .subcommand('balances', 'the balance of every account, or of one owner')
    .argument('[owner]', 'id or e-mail of a user, or "platform"')
    .examples('ledger balances', 'ledger balances creator@example.com --json')
    .action(actions.balances)
  group
    .subcommand(
      'statement',
      "a period's statement of one account holder: opening balances, each entry, closing balances; by default this month",
    )
    .argument('<user>', 'id or e-mail of a merchant or creator, or platform')
    .option('--from <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--to <time>', 'the same; what happens at that moment is left out')
    .examples(
      'ledger statement shop@example.com',
      'ledger statement platform --from 2026-11-01 --to 2026-12-01',
    )
    .action(actions.statement)
  const keys = program.subcommand('keys', 'the key that protects secrets at rest: rotate it')
  keys
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
    .action(keyActions.rotate)
}
