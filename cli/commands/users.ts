import type { Command } from 'commander'
import type { UserRecord } from '../../server/users/users.service.ts'
import { addGroup, DEFAULT_ROWS, exampleText, oneOf, rowLimit } from '../command.ts'
import { confirm, withApp } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { type Output, wireTime } from '../output.ts'

type RoleName = UserRecord['role']

interface ListOptions {
  role?: RoleName
  suspended?: boolean
  limit: number
}

export function addUserCommands(program: Command): void {
  const group = addGroup(program, 'users', 'accounts: list them, make admins, suspend and reinstate')
  group
    .command('list')
    .description('the newest accounts')
    .option('--role <role>', 'merchant, creator or admin', oneOf(['merchant', 'creator', 'admin']))
    .option('--suspended', 'only suspended ones')
    .option('--limit <n>', 'how many at most', rowLimit, DEFAULT_ROWS)
    .addHelpText('after', exampleText('users list --role merchant --limit 10'))
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('create-admin')
    .description('make an admin account; the password is the first line of stdin')
    .argument('<email>')
    .requiredOption('--password-stdin', 'read the password from stdin (typed unseen on a terminal)')
    .option('--name <name>', 'display name; the part of the e-mail before its @ unless given')
    .addHelpText('after', exampleText('users create-admin you@example.com --password-stdin < password.txt'))
    .action((email: string, options: { name?: string }, command: Command) =>
      createAdmin(email, options.name, command),
    )
  group
    .command('set-password')
    .description('give an account another password and end its sessions')
    .argument('<user>', 'id or e-mail')
    .requiredOption('--password-stdin', 'read the password from stdin (typed unseen on a terminal)')
    .addHelpText('after', exampleText('users set-password you@example.com --password-stdin < password.txt'))
    .action((user: string, _options: object, command: Command) => setPassword(user, command))
  group
    .command('suspend')
    .description('shut an account out: its sessions end, its links stop earning')
    .argument('<user>', 'id or e-mail')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText("users suspend creator@example.com --reason 'bought through own links'"),
    )
    .action((user: string, options: { reason?: string }, command: Command) =>
      moveSuspension('suspend', user, options.reason, command),
    )
  group
    .command('reinstate')
    .description('let a suspended account in again')
    .argument('<user>', 'id or e-mail')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText('after', exampleText('users reinstate creator@example.com'))
    .action((user: string, options: { reason?: string }, command: Command) =>
      moveSuspension('reinstate', user, options.reason, command),
    )
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { listUsers } = await import('../../server/users/users.service.ts')
    const { items, next_cursor } = await listUsers(app.platform, options)
    out.show({ items: items.map(wireUser), more: next_cursor !== null }, () => userTable(out, items))
  })
}

function userTable(out: Output, users: readonly UserRecord[]): string[] {
  return out.table(
    [
      { title: 'E-mail', flexible: true },
      { title: 'Role' },
      { title: 'Name', flexible: true },
      { title: 'State' },
      { title: 'Since' },
      { title: 'Id' },
    ],
    users.map((user) => [
      user.email,
      user.role,
      user.displayName,
      user.suspendedAt === null ? 'active' : 'suspended',
      out.time(user.createdAt),
      user.id,
    ]),
  )
}

async function createAdmin(email: string, name: string | undefined, command: Command): Promise<void> {
  await withApp(command, async ({ app, out }) => {
    const users = await import('../../server/users/users.service.ts')
    const displayName = name ?? email.split('@')[0] ?? email
    const admin = await users.createAdmin(app.platform, email, await askedPassword(), displayName)
    out.show(wireUser(admin), () => [`${admin.email} is an admin now (${admin.id}).`])
  })
}

async function setPassword(user: string, command: Command): Promise<void> {
  await withApp(command, async ({ app, out }) => {
    const users = await import('../../server/users/users.service.ts')
    const found = await users.findUser(app.platform, user)
    await users.setPassword(app.platform, found.id, await askedPassword())
    out.show(wireUser(found), () => [`${found.email} has a new password; all sessions have ended.`])
  })
}

async function askedPassword(): Promise<string> {
  const { readPassword } = await import('../read-password.ts')
  const password = await readPassword()
  if (password === '') throw wrongUsage('No password came on stdin.')
  return password
}

async function moveSuspension(
  move: 'suspend' | 'reinstate',
  user: string,
  reason: string | undefined,
  command: Command,
): Promise<void> {
  await withApp(command, async (context) => {
    const { app, out } = context
    const { readLine } = await import('../arguments.ts')
    const noted = reason === undefined ? null : await readLine('--reason', reason, 500)
    const users = await import('../../server/users/users.service.ts')
    const { OPERATOR } = await import('../../server/moderation/audit.service.ts')
    const found = await users.findUser(app.platform, user)
    if (move === 'suspend' && found.suspendedAt === null) {
      await confirm(context, `Suspend ${found.role} ${found.email} and end all sessions?`, 'goes on')
    }
    const change = { userId: found.id, actor: OPERATOR, reason: noted }
    const after = await (move === 'suspend' ? users.suspendUser : users.reinstateUser)(app.platform, change)
    const changed = (after.suspendedAt === null) !== (found.suspendedAt === null)
    const state = after.suspendedAt === null ? 'active' : 'suspended'
    out.show({ ...wireUser(after), changed }, () => [
      changed ? `${after.email} is ${state} now.` : `${after.email} was ${state} already; nothing changed.`,
    ])
  })
}

function wireUser(user: UserRecord) {
  return {
    id: user.id,
    email: user.email,
    role: user.role,
    display_name: user.displayName,
    suspended: user.suspendedAt !== null,
    created_at: wireTime(user.createdAt),
  }
}
