import type { Command } from 'commander'
import type { App } from '../../../server/app.ts'
import { wireUser } from '../../../server/users/user-wire.ts'
import type { UserRecord } from '../../../server/users/users.service.ts'
import { addGroup, exampleText, oneOf } from '../../command.ts'
import { type CommandContext, confirm, isAsked, READS, withApp } from '../../context.ts'
import { addPageOptions, type PageOptions } from '../../pages.ts'
import type { Output } from '../../terminal/output.ts'

type RoleName = UserRecord['role']

interface SuspendOptions {
  reason?: string
  dryRun?: boolean
}

interface ListOptions extends PageOptions {
  role?: RoleName
  suspended?: boolean
}

interface ResetOptions {
  reason: string
}

interface PasswordOptions {
  passwordStdin?: boolean
}

const PASSWORD_STDIN = 'read it from the first line of stdin instead of asking for it at the terminal'

export function addUserCommands(program: Command): void {
  const group = addGroup(program, 'users', 'accounts: list them, make admins, suspend and reinstate')
  addPageOptions(
    group
      .command('list')
      .description('the newest accounts')
      .option('--role <role>', 'merchant, creator or admin', oneOf(['merchant', 'creator', 'admin']))
      .option('--suspended', 'only suspended ones'),
  )
    .addHelpText('after', exampleText('users list --role merchant --limit 10'))
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('create-admin')
    .description(
      'make an admin account; asks for its password, and in production sets up its second factor at a terminal',
    )
    .argument('<email>')
    .option('--password-stdin', PASSWORD_STDIN)
    .option('--name <name>', 'display name; the part of the e-mail before its @ unless given')
    .addHelpText(
      'after',
      exampleText(
        'users create-admin you@example.com',
        'users create-admin you@example.com --password-stdin < password.txt',
      ),
    )
    .action((email: string, options: PasswordOptions & { name?: string }, command: Command) =>
      createAdmin(email, options, command),
    )
  group
    .command('set-password')
    .description('give an account another password, which it asks for, and end its sessions')
    .argument('<user>', 'id or e-mail')
    .option('--password-stdin', PASSWORD_STDIN)
    .addHelpText(
      'after',
      exampleText(
        'users set-password you@example.com',
        'users set-password you@example.com --password-stdin --yes < password.txt',
      ),
    )
    .action((user: string, options: PasswordOptions, command: Command) => setPassword(user, options, command))
  group
    .command('enroll-second-factor')
    .description("set up an admin's second factor: prints the secret, asks for a code, prints recovery codes")
    .argument('<user>', 'id or e-mail')
    .addHelpText('after', exampleText('users enroll-second-factor you@example.com'))
    .action((user: string, _options: object, command: Command) => enrollSecondFactor(user, command))
  group
    .command('reset-second-factor')
    .description(
      'remove the second factor of a user who lost it and the recovery codes, and end all sessions; check who asks first',
    )
    .argument('<user>', 'id or e-mail')
    .requiredOption('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText("users reset-second-factor creator@example.com --reason 'lost the phone, called back'"),
    )
    .action((user: string, options: ResetOptions, command: Command) =>
      resetSecondFactor(user, options, command),
    )
  group
    .command('suspend')
    .description('shut an account out: its sessions end, its links stop earning; shows first what that means')
    .argument('<user>', 'id or e-mail')
    .option('--reason <text>', 'kept in the audit trail')
    .option('--dry-run', 'only show what it would do')
    .addHelpText(
      'after',
      exampleText("users suspend creator@example.com --reason 'bought through own links' --yes"),
    )
    .action((user: string, options: SuspendOptions, command: Command) => suspend(user, options, command))
  group
    .command('reinstate')
    .description('let a suspended account in again')
    .argument('<user>', 'id or e-mail')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText('after', exampleText('users reinstate creator@example.com --yes'))
    .action((user: string, options: { reason?: string }, command: Command) =>
      reinstate(user, options.reason, command),
    )
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listUsers } = await import('../../../server/users/users.service.ts')
      const { items, next_cursor } = await listUsers(app.platform, options)
      out.showPage({ items: items.map(wireUser), next_cursor }, () => userTable(out, items))
    },
    READS,
  )
}

function userTable(out: Output, users: readonly UserRecord[]): string[] {
  return out.table(
    [
      { title: 'E-mail', flexible: true },
      { title: 'Role' },
      { title: 'Name', flexible: true },
      { title: 'State' },
      { title: 'Since', optional: true },
      { title: 'Id', optional: true },
    ],
    users.map((user) => [
      user.email,
      user.role,
      user.displayName,
      user.suspendedAt === null ? 'active' : 'suspended',
      out.shortTime(user.createdAt),
      user.id,
    ]),
  )
}

async function createAdmin(
  email: string,
  options: PasswordOptions & { name?: string },
  command: Command,
): Promise<void> {
  const { readNewPassword, requirePasswordSource } = await import('../../terminal/read-password.ts')
  requirePasswordSource(options)
  await withApp(command, async ({ app, out }) => {
    const users = await import('../../../server/users/users.service.ts')
    const displayName = options.name ?? email.split('@')[0] ?? email
    const admin = await users.createAdmin(app.platform, email, await readNewPassword(), displayName)
    out.show(wireUser(admin), () => [`${admin.email} is an admin now (${admin.id}).`])
    const { isProductionAdmin } = await import('../../../server/users/sessions.service.ts')
    if (out.json || !isProductionAdmin(app.platform, admin)) return
    if (!process.stdin.isTTY) {
      out.print([
        'Admins need a second factor in production: it is set up at the first log-in,',
        `or with "affiliate users enroll-second-factor ${admin.email}".`,
      ])
      return
    }
    const { enroll } = await import('./enroll-second-factor.ts')
    const codes = await enroll(app.platform, admin).catch(async (error: Error) => {
      const { Failure } = await import('../../failures.ts')
      const next = `affiliate users enroll-second-factor ${admin.email}`
      throw new Failure(`${error.message} The account is there; to set up its second factor, run "${next}".`)
    })
    out.print(recoveryLines(admin, codes))
  })
}

async function enrollSecondFactor(user: string, command: Command): Promise<void> {
  const { Failure, wrongUsage } = await import('../../failures.ts')
  await withApp(command, async ({ app, out }) => {
    if (out.json) throw wrongUsage('This command shows a secret and asks for a code; run it without --json.')
    const { findUser } = await import('../../../server/users/users.service.ts')
    const { enroll } = await import('./enroll-second-factor.ts')
    const found = await findUser(app.platform, user)
    if (found.role !== 'admin') {
      throw new Failure(`${found.email} is not an admin; merchants and creators set up their own.`)
    }
    out.print(recoveryLines(found, await enroll(app.platform, found)))
  })
}

function recoveryLines({ email }: UserRecord, codes: readonly string[]): string[] {
  return [
    `The second factor of ${email} is on.`,
    'Keep these recovery codes where the phone is not. Each lets you log in once without it:',
    ...codes.map((code) => `  ${code}`),
    'New ones replace them: POST /auth/totp/recovery-codes with a code.',
  ]
}

async function resetSecondFactor(user: string, options: ResetOptions, command: Command): Promise<void> {
  await withApp(command, async (context) => {
    const { app, out } = context
    const { readLine } = await import('../../arguments.ts')
    const reason = await readLine('--reason', options.reason, 500)
    const { findUser } = await import('../../../server/users/users.service.ts')
    const factors = await import('../../../server/users/second-factor.service.ts')
    const found = await findUser(app.platform, user)
    if (await factors.hasSecondFactor(app.platform.database.reader, found.id)) {
      const question = `Remove the second factor of ${found.role} ${found.email}? All sessions end.`
      await confirm(context, question)
    }
    const changed = await factors.resetSecondFactor(app.platform, found.id, reason)
    out.show({ ...wireUser(found), changed }, () => [
      changed
        ? `${found.email} has no second factor now; all sessions have ended.`
        : `${found.email} has no second factor; nothing changed.`,
    ])
  })
}

async function setPassword(user: string, options: PasswordOptions, command: Command): Promise<void> {
  const { readNewPassword, requirePasswordSource } = await import('../../terminal/read-password.ts')
  requirePasswordSource(options)
  await withApp(command, async (context) => {
    const { app, out } = context
    const users = await import('../../../server/users/users.service.ts')
    const found = await users.findUser(app.platform, user)
    await confirm(context, `Set a new password for ${found.role} ${found.email}? All sessions end.`)
    await users.setPassword(app.platform, found.id, await readNewPassword())
    out.show(wireUser(found), () => [`${found.email} has a new password; all sessions have ended.`])
  })
}

async function suspend(user: string, options: SuspendOptions, command: Command): Promise<void> {
  const work = async (context: CommandContext & { app: App }) => {
    const { app, out } = context
    const reason = await readReason(options.reason)
    const users = await import('../../../server/users/users.service.ts')
    const { previewSuspension } = await import('../../../server/reports/suspension-preview.service.ts')
    const { suspensionLines, wireSuspension } = await import('./suspension-report.ts')
    const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
    const found = await users.findUser(app.platform, user)
    const preview = await previewSuspension(app.platform, found)
    const effects = wireSuspension(preview)
    const lines = suspensionLines(preview)
    if (found.suspendedAt !== null) {
      const document = { ...wireUser(found), changed: false, effects }
      return out.show(document, () => [`${found.email} was suspended already; nothing changed.`])
    }
    if (options.dryRun) {
      const document = { ...wireUser(found), changed: false, effects }
      return out.show(document, () => [
        `Suspending ${found.role} ${found.email}:`,
        ...lines,
        'Nothing was done.',
      ])
    }
    if (isAsked(context)) out.print(lines, process.stderr)
    await confirm(context, `Suspend ${found.role} ${found.email}?`)
    const after = await users.suspendUser(app.platform, { userId: found.id, actor: OPERATOR, reason })
    out.show({ ...wireUser(after), changed: true, effects }, () => [
      ...(isAsked(context) ? [] : lines),
      `${after.email} is suspended now.`,
    ])
  }
  await withApp(command, work, { readOnly: options.dryRun ?? false })
}

async function reinstate(user: string, reasonText: string | undefined, command: Command): Promise<void> {
  await withApp(command, async (context) => {
    const { app, out } = context
    const reason = await readReason(reasonText)
    const users = await import('../../../server/users/users.service.ts')
    const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
    const found = await users.findUser(app.platform, user)
    const changed = found.suspendedAt !== null
    if (changed) await confirm(context, `Reinstate ${found.role} ${found.email}?`)
    const after = await users.reinstateUser(app.platform, { userId: found.id, actor: OPERATOR, reason })
    out.show({ ...wireUser(after), changed }, () => [
      changed ? `${after.email} is active now.` : `${after.email} was active already; nothing changed.`,
    ])
  })
}

async function readReason(text: string | undefined): Promise<string | null> {
  const { readLine } = await import('../../arguments.ts')
  return text === undefined ? null : readLine('--reason', text, 500)
}
