import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { Command } from 'commander'
import { addApplicationCommands } from './commands/applications.ts'
import { addBillingCommands } from './commands/billing.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addDatabaseCommands } from './commands/db.ts'
import { addDemoCommand } from './commands/demo.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addEndpointCommands } from './commands/endpoints.ts'
import { addFlagCommands } from './commands/flagged.ts'
import { addJobCommands } from './commands/jobs.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLedgerCommands } from './commands/ledger.ts'
import { addLinkCommands } from './commands/links.ts'
import { addMailCommands } from './commands/mail.ts'
import { addOfferCommands } from './commands/offers.ts'
import { addPayoutCommands } from './commands/payouts.ts'
import { addProcessorCommands } from './commands/processor.ts'
import { addSaleCommands } from './commands/sales.ts'
import { addSeedCommand } from './commands/seed.ts'
import { addServeCommand } from './commands/serve.ts'
import { addSessionCommands } from './commands/sessions.ts'
import { addStatusCommand } from './commands/status.ts'
import { addStoreCommands } from './commands/stores.ts'
import { addUserCommands } from './commands/users.ts'
import { addWebhookCommands } from './commands/webhooks.ts'

/** From the package's own file, in the source tree and in the built package. */
function version(): string {
  const file = findPackageJSON(import.meta.url) ?? ''
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

/** `help users suspend` → `users suspend --help`: commander's own shows the help of the group. */
export function helpArguments(args: readonly string[]): readonly string[] {
  const [first, ...rest] = args
  return first === 'help' && rest.length > 1 ? [...rest, '--help'] : args
}

/**
 * The whole command line. Only commander is loaded here: each action imports what it needs, so that `--help` and a
 * mistyped option answer at once.
 */
export function buildProgram(): Command {
  const program = new Command('affiliate')
    .description(
      "Affiliate marketplace for Pakistan's online stores: run it, look into it, act as its operator.",
    )
    .version(version(), '--version', 'print the version')
    .option('--json', 'one JSON document on stdout, errors as problem objects on stderr')
    .option('--database-url <url>', 'sqlite:PATH or postgres://…, instead of DATABASE_URL')
    .option('--yes', 'do not ask for confirmation')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .addHelpText(
      'after',
      `
Lists are tables at a terminal, and tab-separated in a pipe or file.
Users are named by id or e-mail, orders by the store's order id or their name such as '#1001'.
Settings are read from the environment and from .env; see server/guides/settings.md.
Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted by Ctrl-C.

Examples:
  $ affiliate serve
  $ affiliate users list --json
  $ affiliate sales explain '#1001'`,
    )
  addServeCommand(program)
  addSeedCommand(program)
  addDemoCommand(program)
  addDatabaseCommands(program)
  addUserCommands(program)
  addSessionCommands(program)
  addStoreCommands(program)
  addOfferCommands(program)
  addApplicationCommands(program)
  addLinkCommands(program)
  addFlagCommands(program)
  addSaleCommands(program)
  addWebhookCommands(program)
  addEndpointCommands(program)
  addBillingCommands(program)
  addPayoutCommands(program)
  addProcessorCommands(program)
  addLedgerCommands(program)
  addKeyCommands(program)
  addMailCommands(program)
  addJobCommands(program)
  addStatusCommand(program)
  addDoctorCommand(program)
  addCompletionCommand(program)
  return program
}
