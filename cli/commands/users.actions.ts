import { OPERATOR } from '../../server/flags/audit.service.ts'
import { Refusal } from '../../server/platform/api/refusal.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { previewSuspension, wireSuspension } from '../../server/reports/operator-status.service.ts'
import * as factors from '../../server/users/second-factor.service.ts'
import { isProductionAdmin } from '../../server/users/sessions.service.ts'
import { wireUser } from '../../server/users/user-wire.ts'
import * as users from '../../server/users/users.service.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { confirm, isAsked, reads, writes } from '../context.ts'
import { Failure, interrupted, wrongUsage } from '../failures.ts'
import { printLines } from '../terminal/printable-text.ts'
import { readNewPassword, Terminal } from '../terminal/prompts.ts'
import { suspensionLines } from './suspension-report.ts'

type UserRow = users.UserRow

type ListOptions = PageOptions & { role?: UserRow['role']; suspended?: boolean }

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  out.showPage(await users.listUsers(platform, options), {
    columns: [
      { title: 'E-mail', flexible: true, least: 30, cell: (user) => user.email },
      { title: 'Role', cell: (user) => user.role },
      { title: 'State', cell: (user) => (user.suspended_at === null ? 'active' : 'suspended') },
      { title: 'Id', cell: (user) => user.id },
      { title: 'Name', flexible: true, cell: (user) => user.display_name },
      out.moment('Since', (user) => user.created_at),
    ],
    wire: wireUser,
    none: 'No accounts.',
  })
})

export const createAdmin = writes(async ({ platform, out }, email: string, options: { name?: string }) => {
  const displayName = options.name ?? email.split('@')[0] ?? email
  const admin = await users.createAdmin(platform, email, await readNewPassword(), displayName)
  out.show(wireUser(admin), () => [`${admin.email} is an admin now (${admin.id}).`])
  if (out.json || !isProductionAdmin(platform, admin)) return
  const next = `"affiliate users enroll-second-factor ${admin.email}"`
  if (!process.stdin.isTTY) {
    return out.print([
      'Admins need a second factor in production: it is set up at the first log-in,',
      `or with ${next}.`,
    ])
  }
  const codes = await enroll(platform, admin).catch((error: Error) => {
    throw new Failure(`${error.message} The account is there; to set up its second factor, run ${next}.`)
  })
  out.print(recoveryLines(admin, codes))
})

export const setPassword = writes(async (context, user: string) => {
  const { platform, out } = context
  const found = await users.findUser(platform, user)
  await confirm(
    context,
    `Set a new password for ${found.role} ${found.email}? All sessions and API keys end.`,
  )
  await users.setPassword(platform, found.id, await readNewPassword())
  out.show(wireUser(found), () => [
    `${found.email} has a new password; all sessions and API keys have ended.`,
  ])
})

export const enrollSecondFactor = writes(async ({ platform, out }, user: string) => {
  if (out.json) throw wrongUsage('This command shows a secret and asks for a code; run it without --json.')
  const found = await users.findUser(platform, user)
  if (found.role !== 'admin') {
    throw new Failure(`${found.email} is not an admin; merchants and creators set up their own.`)
  }
  out.print(recoveryLines(found, await enroll(platform, found)))
})

const MOST_TRIES = 3

/** Sets up a second factor: shows the secret on stderr, reads a code from stdin, and returns the recovery codes. */
async function enroll(platform: Platform, user: UserRow): Promise<string[]> {
  const { secret, otpauthUrl } = await factors.startTotp(platform, user.id)
  const title = 'Add this account to an authenticator app, by the secret or as a QR code:'
  const spaced = secret.replace(/.{4}(?=.)/g, '$& ')
  printLines([title, '', `  ${spaced}`, '', `  ${otpauthUrl}`, ''], process.stderr)
  const terminal = new Terminal()
  try {
    for (let left = MOST_TRIES - 1; ; left -= 1) {
      const code = await terminal.ask('Code that the app shows: ')
      if (terminal.interrupted) throw interrupted()
      if (code === null) throw new Failure('No code was given; the second factor is off. Run this again.')
      try {
        return await factors.confirmTotp(platform, user.id, code, OPERATOR)
      } catch (error) {
        if (left === 0 || !(error instanceof Refusal && error.code === 'invalid_credentials')) throw error
        const advice = 'That is not the current code. Check the clocks of the phone and of this machine.'
        printLines([advice], process.stderr)
      }
    }
  } finally {
    terminal.close()
  }
}

function recoveryLines({ email }: UserRow, codes: readonly string[]): string[] {
  return [
    `The second factor of ${email} is on.`,
    'Keep these recovery codes where the phone is not. Each lets you log in once without it:',
    ...codes.map((code) => `  ${code}`),
    'New ones replace them: POST /auth/totp/recovery-codes with a code.',
  ]
}

export const resetSecondFactor = writes(async (context, user: string, { reason }: { reason: string }) => {
  const { platform, out } = context
  const found = await users.findUser(platform, user)
  if (await factors.hasSecondFactor(platform, platform.database.reader, found.id)) {
    await confirm(context, `Remove the second factor of ${found.role} ${found.email}? All sessions end.`)
  }
  const changed = await factors.resetSecondFactor(platform, found.id, reason)
  out.show({ ...wireUser(found), changed }, () => [
    changed
      ? `${found.email} has no second factor now; all sessions have ended.`
      : `${found.email} has no second factor; nothing changed.`,
  ])
})

type SuspendOptions = ReasonOption & { dryRun?: boolean }

export const suspend = writes(async (context, user: string, options: SuspendOptions) => {
  const { platform, out } = context
  const { dryRun, reason = null } = options
  const found = await users.findUser(platform, user)
  const preview = await previewSuspension(platform, found)
  const effects = wireSuspension(preview)
  const lines = suspensionLines(preview)
  const unchanged = { ...wireUser(found), changed: false, effects }
  if (found.suspended_at !== null) {
    return out.show(unchanged, () => [`${found.email} was suspended already; nothing changed.`])
  }
  if (dryRun) {
    return out.show(unchanged, () => [
      `Suspending ${found.role} ${found.email}:`,
      ...lines,
      'Nothing was done.',
    ])
  }
  if (isAsked(context)) out.print(lines, process.stderr)
  await confirm(context, `Suspend ${found.role} ${found.email}?`)
  const after = await users.suspendUser(platform, { userId: found.id, actor: OPERATOR, reason })
  out.show({ ...wireUser(after), changed: true, effects }, () => [
    ...(isAsked(context) ? [] : lines),
    `${after.email} is suspended now.`,
  ])
})

export const reinstate = writes(async (context, user: string, { reason = null }: ReasonOption) => {
  const { platform, out } = context
  const found = await users.findUser(platform, user)
  const changed = found.suspended_at !== null
  if (changed) await confirm(context, `Reinstate ${found.role} ${found.email}?`)
  const after = await users.reinstateUser(platform, { userId: found.id, actor: OPERATOR, reason })
  out.show({ ...wireUser(after), changed }, () => [
    changed ? `${after.email} is active now.` : `${after.email} was active already; nothing changed.`,
  ])
})
