import { requireAuthentic } from '../../server/platform/database/protected-rows.ts'
import { isProduction } from '../../server/production-mark.ts'
import { checkSecondFactor, hasSecondFactor, wrongCode } from '../../server/users/second-factor.service.ts'
import { findUser, type UserRow } from '../../server/users/users.service.ts'
import type { AppContext } from '../context.ts'
import { Failure } from '../failures.ts'
import { Terminal } from '../terminal/prompts.ts'

/** Who does it, and where the service is. */
export interface ByAdmin {
  as: string
  code?: string
  url?: string
}

const forbidden = (message: string) => new Failure(message, { code: 'forbidden' })

/**
 * The active admin that `--as` names. In production, by the settings or by the database, with a code of the second factor: `--code`, or asked
 * at a terminal. The code that was used last counts again while it is valid, so that a command can be repeated.
 */
export async function actingAdmin({ platform, app }: AppContext, { as, code }: ByAdmin): Promise<UserRow> {
  const { database, keys, config } = platform
  const user = await findUser(platform, as)
  requireAuthentic(keys, 'users', user)
  if (user.role !== 'admin') throw forbidden(`${user.email} is not an admin.`)
  if (user.suspended_at !== null) throw forbidden(`${user.email} is suspended.`)
  const isNeeded = config.NODE_ENV === 'production' || (await isProduction(app.database.reader))
  if (!isNeeded && code === undefined) return user
  if (isNeeded && !(await hasSecondFactor(platform, database.reader, user.id))) {
    throw forbidden(
      `${user.email} has no second factor, which production needs. Run "affiliate users enroll-second-factor ${user.email}".`,
    )
  }
  const given = code ?? (await askedCode(user))
  const verdict = await checkSecondFactor(platform, { user, address: 'cli' }, given, { again: true })
  if (verdict === 'right' || (verdict === 'not_needed' && !isNeeded)) return user
  throw wrongCode()
}

async function askedCode({ email }: UserRow): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new Failure('Not a terminal; give the code with --code.')
  const terminal = new Terminal()
  const code = await terminal
    .ask(`Code of the authenticator app of ${email}: `)
    .finally(() => terminal.close())
  if (code === null || code === '') throw new Failure('No code was given. Nothing was done.')
  return code
}
