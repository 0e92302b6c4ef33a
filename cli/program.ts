import { Command } from 'commander'
import { addBillingCommands } from './commands/billing.ts'
import { addDatabaseCommands } from './commands/db.ts'
import { addDemoCommand } from './commands/demo.ts'
import { addLedgerCommands } from './commands/ledger.ts'
import { addPayoutCommands } from './commands/payouts.ts'
import { addSaleCommands } from './commands/sales.ts'
import { addServeCommand } from './commands/serve.ts'
import { addUserCommands } from './commands/users.ts'
import { addWebhookCommands } from './commands/webhooks.ts'

/**
 * The whole command line. Only commander is loaded here: each action imports what it needs, so that `--help` and a
 * mistyped option answer at once.
 */
export function buildProgram(): Command {
  const program = new Command('affiliate')
    .description(
      "Affiliate marketplace for Pakistan's online stores: run it, look into it, act as its operator.",
    )
    .option('--json', 'one JSON document on stdout, errors as problem objects on stderr')
    .option('--database-url <url>', 'sqlite:PATH or postgres://…, instead of DATABASE_URL')
    .option('--yes', 'do not ask before what cannot be undone')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .addHelpText(
      'after',
      `
Users are named by id or e-mail, orders by the store's order id or their name such as '#1001'.
Settings are read from the environment and from .env; see the README.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage.

Examples:
  $ affiliate serve
  $ affiliate users list --json
  $ affiliate sales explain '#1001'`,
    )
  addServeCommand(program)
  addDemoCommand(program)
  addDatabaseCommands(program)
  addUserCommands(program)
  addSaleCommands(program)
  addWebhookCommands(program)
  addBillingCommands(program)
  addPayoutCommands(program)
  addLedgerCommands(program)
  return program
}
