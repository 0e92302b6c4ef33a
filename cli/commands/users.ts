import { type CliCommand, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./users.actions.ts'))
const viewActions = lazy(() => import('./views.actions.ts'))
const sessionActions = lazy(() => import('./sessions.actions.ts'))

/** `users` and `sessions`. */
export function addUserCommands(program: CliCommand): void {
  const group = program.subcommand('users', 'accounts: list, show, make admins, suspend, reinstate')
  group
    .subcommand('list', 'the newest accounts')
    .choice('--role <role>', 'merchant, creator or admin')
    .option('--suspended', 'only suspended ones')
    .paged()
    .examples('users list --role merchant --limit 10')
    .action(actions.list)
  group
    .subcommand(
      'show',
      'one account on one screen: its state and balance, and its newest links, sales, sessions, mails and open flags',
    )
    .argument('<user>', 'id or e-mail')
    .viewed()
    .remarks(`What was done to the account: affiliate audit list --subject USER
Whole lists: affiliate links list --creator USER, sales list --creator USER, mail list --user USER, sessions list USER`)
    .examples('users show creator@example.com', 'users show creator@example.com --limit 20 --json')
    .action(viewActions.showUser)
  asksForPassword(
    group
      .subcommand(
        'create-admin',
        'make an admin account; asks for its password, and in production sets up its second factor at a terminal',
      )
      .argument('<email>'),
  )
    .option('--name <name>', 'display name; the part of the e-mail before its @ unless given')
    .examples(
      'users create-admin you@example.com',
      'users create-admin you@example.com --password-stdin < password.txt',
    )
    .action(actions.createAdmin)
  asksForPassword(
    group
      .subcommand(
        'set-password',
        'give an account another password, which it asks for, and end its sessions and API keys',
      )
      .argument('<user>', 'id or e-mail'),
  )
    .examples(
      'users set-password you@example.com',
      'users set-password you@example.com --password-stdin --yes < password.txt',
    )
    .action(actions.setPassword)
  group
    .subcommand(
      'enroll-second-factor',
      "set up an admin's second factor: prints the secret, asks for a code, prints recovery codes",
    )
    .argument('<user>', 'id or e-mail')
    .examples('users enroll-second-factor you@example.com')
    .action(actions.enrollSecondFactor)
  group
    .subcommand(
      'reset-second-factor',
      'remove the second factor of a user who lost it and the recovery codes, and end all sessions; check who asks first',
    )
    .argument('<user>', 'id or e-mail')
    .text('--reason <text>', 'kept in the audit trail', { line: 500, required: true })
    .examples("users reset-second-factor creator@example.com --reason 'lost the phone, called back'")
    .action(actions.resetSecondFactor)
  group
    .subcommand(
      'suspend',
      'shut an account out: its sessions and API keys end, its links stop earning; shows first what that means',
    )
    .argument('<user>', 'id or e-mail')
    .text('--reason <text>', 'kept in the audit trail', { line: 500 })
    .option('--dry-run', 'only show what it would do')
    .examples("users suspend creator@example.com --reason 'bought through own links' --yes")
    .action(actions.suspend)
  group
    .subcommand('reinstate', 'let a suspended account in again')
    .argument('<user>', 'id or e-mail')
    .text('--reason <text>', 'kept in the audit trail', { line: 500 })
    .examples('users reinstate creator@example.com --yes')
    .action(actions.reinstate)
  const sessions = program.subcommand('sessions', 'where an account is logged in: list, end')
  sessions
    .subcommand('list', "an account's open sessions, newest first")
    .argument('<user>', 'id or e-mail')
    .paged()
    .examples('sessions list creator@example.com')
    .action(sessionActions.list)
  sessions
    .subcommand('end', 'log an account out: one of its sessions, or all')
    .argument('<user>', 'id or e-mail')
    .argument('[session]', 'id of the one to end; all unless given', idOf('session'))
    .examples('sessions end creator@example.com --yes')
    .action(sessionActions.end)
}

function asksForPassword(command: CliCommand): CliCommand {
  return command
    .option(
      '--password-stdin',
      'read it from the first line of stdin instead of asking for it at the terminal',
    )
    .demand(
      'Not a terminal; pass the password on stdin with --password-stdin.',
      ({ passwordStdin }) => passwordStdin || (process.stdin.isTTY && process.stderr.isTTY),
    )
}
