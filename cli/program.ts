import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { Argument, type Command, Help, Option } from 'commander'
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
import { resolveShortIds } from './short-ids.ts'

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

/** `help users suspend` → `users suspend --help`: commander's own shows the help of the group. A wrong word is left to be refused. */
export function helpArguments([first, ...words]: readonly string[], program: CliCommand): readonly string[] {
  if (first !== 'help') return first === undefined ? [] : [first, ...words]
  let command: Command = program
  for (const [at, word] of words.entries()) {
    const next = command.commands.find((one) => one.name() === word)
    if (next === undefined && command.commands.length > 0) return words.slice(0, at + 1)
    command = next ?? command
  }
  return [...words, '--help']
}

const HELP_OPTION = new Option('-h, --help', 'display help for command').hideHelp()

/** Commands by their names and arguments, and no options of the program: the last paragraph of every help has them. */
const HELP_FORMAT: Partial<Help> = {
  subcommandTerm: (command) => `${command.name()} ${command.usage().replace(/\[(options|command)\] ?/g, '')}`,
  formatHelp: (command, help) => {
    const text = new Help().formatHelp(command, help)
    return command.parent ? text : text.replace(/\nOptions:\n(.+\n)+/, '')
  },
}

/** The last paragraph of every help. */
function globalOptionsText(program: CliCommand): string {
  const help = program.createHelp()
  help.prepareContext({ helpWidth: process.stdout.columns || 80 })
  const options = [...program.options, HELP_OPTION]
  const width = Math.max(...options.map(({ flags }) => flags.length))
  const items = options.map(({ flags, description }) => help.formatItem(flags, width, description, help))
  return ['', ...help.formatItemList('Global options:', items, help)].join('\n').trimEnd()
}

/** Every command, under the headings of `--help`. */
const HELP_GROUPS: readonly [heading: string, ...((program: CliCommand) => void)[]][] = [
  ['Start:', addRunCommands],
  ['People and offers:', addUserCommands, addStoreCommands, addOfferCommands],
  ['Review:', addFlagCommands],
  ['Orders and events:', addSaleCommands, addWebhookCommands, addEndpointCommands],
  ['Money:', addBillingCommands, addPayoutCommands, addManualCommands, addLedgerCommands],
  ['Operate:', addLookCommands, addDatabaseCommands, addMailCommands],
]

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
    .option('--json', 'one JSON document on stdout; errors too, on stderr')
    .option('--database-url <url>', 'sqlite:PATH or postgres://…, instead of DATABASE_URL')
    .option('--yes', 'do not ask for confirmation')
    .option('--full-ids', 'show whole ids at a terminal, not their last eight letters')
    .addHelpOption(HELP_OPTION)
    .configureHelp(HELP_FORMAT)
    .hook('preAction', (_program, command) => resolveShortIds(command))
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .remarks(`Lists are tables at a terminal, and tab-separated in a pipe or file.
Users are named by id or e-mail, orders by the store's order id or their name
such as '#1001'. Of an id, its last six or more characters are enough.
Settings are read from the environment, and from .env and affiliate.env in this
folder; see server/guides/settings.md.
Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted by Ctrl-C.`)
    .examples('serve', 'users list --json', "sales explain '#1001'")
  program.addHelpText('afterAll', () => globalOptionsText(program))
  for (const [heading, ...adders] of HELP_GROUPS) {
    program.commandsGroup(heading)
    for (const add of adders) add(program)
  }
  program.helpCommand('help [command]')
  return program
}

function addRunCommands(program: CliCommand): void {
  program
    .subcommand('serve', 'run the service: web, worker, scheduler, as ROLES says')
    .option(
      '--seed',
      'fill an empty development database first, as "affiliate seed" does, and serve a practice shop',
    )
    .examples('serve', 'serve --seed', 'serve --database-url postgres://affiliate@localhost/affiliate')
    .action(serveActions.serve)
  program
    .subcommand('init', 'write a settings file for production, with keys')
    .option('--file <path>', 'where to write; an existing file is kept', SETTINGS_FILE)
    .option('--domain <host>', 'of affiliate links and webhooks: PUBLIC_BASE_URL')
    .option('--smtp-url <url>', 'the mail server, or off: SMTP_URL')
    .option('--mail-from <mailbox>', 'the sender of mails: MAIL_FROM')
    .option('--processor <name>', 'the payment processor: PROCESSOR')
    .remarks(`It asks for domain, database, mail and payment processor, and makes the keys.
It asks only for what no option and no environment variable of the setting's
name says. Without a terminal, say everything; keep secrets in the environment.
The file is checked as a whole before it is written, with mode 600.`)
    .examples(
      'init',
      'init --file /etc/affiliate/affiliate.env --domain partners.chenab.pk',
      'init --domain partners.chenab.pk --smtp-url off --processor http < /dev/null',
    )
    .action(initActions.init)
  program
    .subcommand('seed', 'fill an empty development database with a week of sales')
    .remarks(
      `The accounts have a password that is printed and public. Production refuses a seeded database for good.`,
    )
    .examples('seed', 'seed --database-url sqlite:./data/try.db')
    .action(seedActions.seedCommand)
  program
    .subcommand('demo', 'show the whole chain, from an order to a paid payout')
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
    .subcommand('status', 'where everything stands, on one screen')
    .option('--watch', 'go on showing it until Ctrl-C; with --json one document a line')
    .option('--every <seconds>', 'how often --watch looks', wholeNumber(1, 3600), 2)
    .examples('status', 'status --watch --every 5')
    .action(statusActions.status)
  program
    .subcommand('doctor', 'check settings, database, disk and more; say what to fix')
    .option(
      '--after-failover',
      'also: whether acknowledged events may have been lost when a standby or a backup took over, and how to find them',
    )
    .examples('doctor', 'doctor --json', 'doctor --after-failover')
    .action(doctorActions.doctor)
  program
    .subcommand('completion', 'print what makes a shell complete commands')
    .addArgument(new Argument('<shell>', SHELLS.join(', ')).choices(SHELLS))
    .remarks(`In ~/.bashrc  source <(affiliate completion bash)
In ~/.zshrc   source <(affiliate completion zsh)
For fish      affiliate completion fish > ~/.config/fish/completions/affiliate.fish`)
    .examples('completion bash')
    .action(completionActions.completion)
}
