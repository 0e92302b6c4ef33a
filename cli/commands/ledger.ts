import { InvalidArgumentError } from 'commander'
import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./ledger.actions.ts'))

function digestOf(text: string): string {
  const digest = text.trim().toLowerCase()
  if (/^(storage|[0-9a-f]{8}\.[0-9a-f]{64})$/.test(digest)) return digest
  throw new InvalidArgumentError(
    'It must be a digest as "affiliate ledger seal" printed it: 8 characters, a dot and 64 more.',
  )
}

export function addLedgerCommands(program: CliCommand): void {
  const group = program.subcommand('ledger', 'the journal: check the books, seal them, show balances')
  group
    .subcommand(
      'verify',
      'check every invariant of the books, for what is new since the last verified seal; exit 1 when a row breaks one',
    )
    .option('--full', 'check all rows, also those that an earlier run has verified')
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
}
