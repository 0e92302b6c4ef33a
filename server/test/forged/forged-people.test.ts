import { type RawBuilder, sql } from 'kysely'
import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { sha256 } from '../../platform/crypto/vault.ts'
import { hashPassword } from '../../users/passwords.ts'
import { confirmTotp, startTotp } from '../../users/second-factor.service.ts'
import { createToken } from '../../users/sessions.service.ts'
import { codeOf } from '../testkit/authenticator.ts'
import { type MarketContext, marketSuites } from '../testkit/market-suites.ts'
import { outcomeOf, requestOf } from '../testkit/people.ts'
import { assertForgeryFlagged, writeWithoutKey } from '../testkit/tamper.ts'

const EMAIL = 'sana@example.com'
const PASSWORD = 'a long passphrase'
const THIEF = 'the passphrase of a thief'

interface Context {
  userId: string
}

for (const { it } of marketSuites<Context>('an account that someone opens in the database')) {
  const api = ({ platform }: MarketContext) => appRouter.createCaller(requestOf(platform, null))
  const logIn = (context: MarketContext, password: string, code?: string) =>
    outcomeOf(api(context).auth.login({ email: EMAIL, password, code }))
  const write = ({ bed }: MarketContext, statement: RawBuilder<unknown>) =>
    writeWithoutKey(bed.testDatabase.database, statement)
  const turnOn = async ({ platform, clock, userId }: MarketContext & Context) => {
    const { secret } = await startTotp(platform, userId)
    const [code = ''] = await confirmTotp(platform, userId, codeOf(secret, clock), userId)
    return code
  }

  it.before.each(async (context) => {
    const account = { email: EMAIL, password: PASSWORD, display_name: 'Sana', role: 'creator' } as const
    context.userId = (await api(context).auth.register(account)).user.id
  })

  it('opens with no other password', async (context) => {
    await write(context, sql`update users set password_hash = ${await hashPassword(THIEF)}`)
    assert.is(await logIn(context, THIEF), 'conflict')
    await assertForgeryFlagged(context.platform, 'users')
  })

  it('takes no link that was not mailed', async (context) => {
    const { clock, userId } = context
    const { token, hash } = createToken()
    const digest = sql`(select row_digest from users)`
    await write(
      context,
      sql`insert into account_tokens (user_id, purpose, token_hash, created_at, expires_at, row_digest)
        values (${userId}, 'password_reset', ${hash}, 1, ${clock.now() + 1000}, ${digest})`,
    )
    const reset = api(context).auth.resetPassword({ token, new_password: THIEF })
    assert.is(await outcomeOf(reset), 'conflict')
    await assertForgeryFlagged(context.platform, 'account_tokens')
    assert.is(await logIn(context, PASSWORD), 'ok')
  })

  it('takes no recovery code that someone added', async (context) => {
    const code = await turnOn(context)
    await write(
      context,
      sql`update recovery_codes set code_hash = ${sha256('ABCDEFGHIJKLMNOP')}
        where code_hash = (select max(code_hash) from recovery_codes where code_hash <> ${sha256(code.replaceAll('-', ''))})`,
    )
    assert.is(await logIn(context, PASSWORD, 'ABCD-EFGH-IJKL-MNOP'), 'conflict')
    await assertForgeryFlagged(context.platform, 'recovery_codes')
    assert.is(await logIn(context, PASSWORD, code), 'ok')
  })

  it('needs its second factor after that was turned off', async (context) => {
    await turnOn(context)
    await write(context, sql`update second_factors set confirmed_at = null`)
    assert.is(await logIn(context, PASSWORD), 'conflict')
    await assertForgeryFlagged(context.platform, 'second_factors')
  })

  it.run()
}
