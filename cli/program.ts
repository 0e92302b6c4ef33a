import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { Argument } from 'commander'
import { CliCommand, lazy, oneOf, wholeNumber } from './command.ts'
import { addBillingCommands } from './commands/billing.ts'
import { addDatabaseCommands } from './commands/db.ts'
import { addEndpointCommands } from './commands/endpoints.ts'
import { addFlagCommands } from './commands/flagged.ts'
import { addLedgerCommands } from './commands/ledger.ts'
import { addMailCommands } from './commands/mail.ts'
import { addManualCommands } from './commands/manual.ts'
import { addOfferCommands } from './commands/offers.ts'
import { addPayoutCommands } from './commands/payouts.ts'
import { addSaleCommands } from './commands/sales.ts'
import { addStoreCommands } from './commands/stores.ts'
import { addUserCommands } from './commands/users.ts'
import { addWebhookCommands } from './commands/webhooks.ts'
import { SETTINGS_FILE } from './settings-files.ts'

const serveActions = lazy(() => import('./commands/serve.actions.ts'))
const initActions = lazy(() => import('./commands/init.actions.ts'))
const seedActions = lazy(() => import('./commands/seed.actions.ts'))
const demoActions = lazy(() => import('./commands/demo.actions.ts'))
const statusActions = lazy(() => import('./commands/status.actions.ts'))
const doctorActions = lazy(() => import('./commands/doctor.actions.ts'))
const completionActions = lazy(() => import('./commands/completion.actions.ts'))

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
export function buildProgram(): CliCommand {
  const program = new CliCommand('affiliate')
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
    .remarks(`Lists are tables at a terminal, and tab-separated in a pipe or file.
Users are named by id or e-mail, orders by the store's order id or their name such as '#1001'.
Settings are read from the environment, and from .env and affiliate.env in this folder; see server/guides/settings.md.
Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted by Ctrl-C.`)
    .examples('serve', 'users list --json', "sales explain '#1001'")
  addRunCommands(program)
  addDatabaseCommands(program)
  addUserCommands(program)
  addStoreCommands(program)
  addOfferCommands(program)
  addFlagCommands(program)
  addSaleCommands(program)
  addWebhookCommands(program)
  addEndpointCommands(program)
  addBillingCommands(program)
  addPayoutCommands(program)
  addManualCommands(program)
  addLedgerCommands(program)
  addMailCommands(program)
  addLookCommands(program)
  return program
}

function addRunCommands(program: CliCommand): void {
  program
    .subcommand('serve', 'run the service: web, worker, scheduler and the sandbox processor, as ROLES says')
    .option(
      '--seed',
      'fill an empty development database first, as "affiliate seed" does, and serve a practice shop',
    )
    .examples('serve', 'serve --seed', 'serve --database-url postgres://affiliate@localhost/affiliate')
    .action(serveActions.serve)
  program
    .subcommand(
      'init',
      'write a settings file for production: asks for domain, database, mail and payment processor, and makes keys',
    )
    .option('--file <path>', 'where to write; an existing file is kept', SETTINGS_FILE)
    .option('--domain <host>', 'of affiliate links and webhooks: PUBLIC_BASE_URL')
    .option('--smtp-url <url>', 'the mail server, or off: SMTP_URL')
    .option('--mail-from <mailbox>', 'the sender of mails: MAIL_FROM')
    .option('--processor <name>', 'the payment processor: PROCESSOR')
    .remarks(`It asks only for what no option and no environment variable of the setting's
name says. Without a terminal, say everything; keep secrets in the environment.
The file is checked as a whole before it is written, with mode 600.`)
    .examples(
      'init',
      'init --file /etc/affiliate/affiliate.env --domain partners.chenab.pk',
      'init --domain partners.chenab.pk --smtp-url off --processor http < /dev/null',
    )
    .action(initActions.init)
  program
    .subcommand(
      'seed',
      'fill an empty development database: a merchant, creators, offers, links, a week of sales',
    )
    .remarks(
      `The accounts have a password that is printed and public. Production refuses a seeded database for good.`,
    )
    .examples('seed', 'seed --database-url sqlite:./data/try.db')
    .action(seedActions.seedCommand)
  program
    .subcommand(
      'demo',
      'show the whole chain at work on a server of its own: from a store’s order to a paid payout',
    )
    .option(
      '--processor <name>',
      'sandbox, or safepay-raast: a double of Safepay on this machine, by the SAFEPAY_* settings of the environment',
      oneOf(['sandbox', 'safepay-raast']),
      'sandbox',
    )
    .option('--keep', 'leave the server running, and print its addresses and credentials')
    .remarks(`Starts the real server on free ports over a temporary database, acts as merchant, creators, visitors and store, and
ends with statements that add up by hand. Exit code 0 means that every check passed. Leaves nothing
behind unless --keep is given.

--processor safepay-raast needs a double of Safepay on this machine: see "Try it" in the guide "safepay". Nothing is
sent to Safepay itself.`)
    .examples('demo', 'demo --keep', 'demo --processor safepay-raast', 'demo --json')
    .action(demoActions.demo)
}

const SHELLS = ['bash', 'zsh', 'fish']

function addLookCommands(program: CliCommand): void {
  program
    .subcommand(
      'status',
      'where everything stands, on one screen: inbox, sales, cycles, payouts, flags, schedule, database',
    )
    .option('--watch', 'go on showing it until Ctrl-C; with --json one document a line')
    .option('--every <seconds>', 'how often --watch looks', wholeNumber(1, 3600), 2)
    .examples('status', 'status --watch --every 5')
    .action(statusActions.status)
  program
    .subcommand(
      'doctor',
      'check runtime, settings, database, disk, clock, secrets, processor and addresses; say how to fix each problem',
    )
    .option(
      '--after-failover',
      'also: whether acknowledged events may have been lost when a standby or a backup took over, and how to find them',
    )
    .examples('doctor', 'doctor --json', 'doctor --after-failover')
    .action(doctorActions.doctor)
  program
    .subcommand('completion', 'print what makes a shell complete commands and options')
    .addArgument(new Argument('<shell>', SHELLS.join(', ')).choices(SHELLS))
    .remarks(`In ~/.bashrc   source <(affiliate completion bash)
In ~/.zshrc    source <(affiliate completion zsh)
For fish       affiliate completion fish > ~/.config/fish/completions/affiliate.fish`)
    .examples('completion bash')
    .action(completionActions.completion)
}
