import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { changeUser } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { isRefused, newEmail, PASSWORD, register } from '../test/testkit/web-people.ts'
import { hashPassword } from './passwords.ts'

const IBAN = 'PK36SCBL0000001123456702'

for (const dialect of proofDialects()) {
  const it = suite<{ bed: WebTestbed }>(`users on ${dialect}`)

  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect)
  })
  it.after(({ bed }) => bed.close())

  it('registers a creator and answers a token that works', async ({ bed }) => {
    const { answer, token, user } = await register(bed, 'creator', '  Ayesha@Example.PK ')
    assert.equal(Object.keys(answer.body).sort(), ['expires_at', 'token', 'user'])
    assert.match(token, /^[A-Za-z0-9_-]{43}$/)
    assert.is(answer.body.expires_at, new Date(bed.clock.now() + 30 * DAY).toISOString())
    assert.equal(user, {
      id: user.id,
      email: 'ayesha@example.pk',
      role: 'creator',
      display_name: 'Ayesha Khan',
      suspended: false,
      created_at: '2026-11-01T07:00:00.000Z',
      email_verified_at: null,
      second_factor: false,
      payout_destination: null,
      upcoming_payout_destination: null,
      balance: {
        pending: '0.00',
        released: '0.00',
        in_transit: '0.00',
        paid: '0.00',
        payout_threshold: '1000.00',
        currency: 'PKR',
      },
    })
    const me = await bed.ask('GET', '/me', { token })
    assert.is(me.status, 200)
    assert.equal(me.body, user)
    assert.is(me.headers.get('cache-control'), 'no-store')
  })

  it('registers a merchant with an account in place of a balance', async ({ bed }) => {
    const { user } = await register(bed, 'merchant')
    const fields = 'account billing_account created_at display_name email email_verified_at id role'
    assert.is(Object.keys(user).sort().join(' '), `${fields} second_factor suspended`)
    assert.is(user.billing_account, null)
    assert.equal(user.account, {
      open_cycle_due: '0.00',
      unpaid: '0.00',
      credit_available: '0.00',
      currency: 'PKR',
    })
  })

  it('keeps neither passwords nor tokens', async ({ bed }) => {
    const { token } = await register(bed, 'creator')
    const { reader } = bed.platform.database
    const stored = JSON.stringify([
      await reader.selectFrom('users').selectAll().execute(),
      await reader.selectFrom('sessions').selectAll().execute(),
    ])
    assert.not.ok(stored.includes(token) || stored.includes(PASSWORD))
    assert.match(stored, /\$argon2id\$/)
  })

  it('refuses registrations that make no sense', async ({ bed }) => {
    const good = { email: newEmail(), password: PASSWORD, role: 'creator', display_name: 'A' }
    const post = (change: Record<string, unknown>) =>
      bed.ask('POST', '/auth/register', { body: { ...good, ...change } })
    isRefused(await post({ email: 'no one' }), 400, 'validation_failed', 'email')
    isRefused(await post({ email: `${'x'.repeat(250)}@example.pk` }), 400, 'validation_failed', 'email')
    isRefused(await post({ password: 'too short' }), 400, 'validation_failed', 'password')
    isRefused(await post({ password: 'x'.repeat(257) }), 400, 'validation_failed', 'password')
    isRefused(await post({ role: 'admin' }), 400, 'validation_failed', 'role')
    isRefused(await post({ display_name: '  ' }), 400, 'validation_failed', 'display_name')
    for (const display_name of ['a\u0000b', '\u200b', '\u2060 \u00ad', 'Sana\u202emoc.live']) {
      isRefused(await post({ display_name }), 400, 'validation_failed', 'display_name')
      const overTrpc = await bed.ask('POST', '/trpc/auth.register', { body: { ...good, display_name } })
      assert.is(overTrpc.status, 400)
      assert.match(JSON.stringify(overTrpc.body), '"code":"validation_failed"')
    }
    isRefused(await post({ suspended: false, id: 'x' }), 400, 'validation_failed', 'id', 'suspended')
    isRefused(
      await bed.ask('POST', '/auth/register', { body: {} }),
      400,
      'validation_failed',
      'display_name',
      'email',
      'password',
      'role',
    )
  })

  it('refuses weak passwords for new accounts and for changes, and names the field', async ({ bed }) => {
    const email = newEmail()
    const registerWith = (password: string) =>
      bed.ask('POST', '/auth/register', {
        body: { email, password, role: 'creator', display_name: 'Bilal Ahmed Shah' },
      })
    for (const [password, message] of [
      [email, /e-mail or display name/],
      ['bilalahmedshah99', /e-mail or display name/],
    ] as const) {
      const answer = await registerWith(password)
      isRefused(answer, 400, 'validation_failed', 'password')
      assert.match((answer.body.issues as { message: string }[])[0]?.message ?? '', message)
      assert.not.match(JSON.stringify(answer.body), password)
    }
    const registered = await registerWith(PASSWORD)
    assert.is(registered.status, 201)
    const token = String(registered.body.token)
    const change = { current_password: PASSWORD, new_password: 'Bilal.Ahmed-Shah' }
    const refused = await bed.ask('POST', '/auth/password', { token, body: change })
    isRefused(refused, 400, 'validation_failed', 'new_password')
    const login = await bed.ask('POST', '/auth/login', { body: { email, password: PASSWORD } })
    assert.is(login.status, 200, 'nothing has changed')
  })

  it('lets a weak password that was set earlier log in', async ({ bed }) => {
    const { email, id } = await register(bed, 'creator')
    const password_hash = await hashPassword('password123')
    await changeUser(bed.platform, id, { password_hash })
    const answer = await bed.ask('POST', '/auth/login', { body: { email, password: 'password123' } })
    assert.is(answer.status, 200)
  })

  it('has one account an e-mail, also when two register at once', async ({ bed }) => {
    const email = newEmail()
    const again = (text: string) =>
      bed.ask('POST', '/auth/register', {
        body: { email: text, password: PASSWORD, role: 'merchant', display_name: 'A' },
      })
    const statuses = (await Promise.all([again(email), again(email), again(email)])).map((one) => one.status)
    assert.equal(statuses.sort(), [201, 409, 409])
    isRefused(await again(email.toUpperCase()), 409, 'email_taken')
  })

  it('logs in with the right password only, and does not tell which part was wrong', async ({ bed }) => {
    const { email } = await register(bed, 'merchant')
    const login = (body: unknown) => bed.ask('POST', '/auth/login', { body })
    const good = await login({ email: email.toUpperCase(), password: PASSWORD })
    assert.is(good.status, 200)
    assert.is((await bed.ask('GET', '/me', { token: String(good.body.token) })).status, 200)
    const wrong = await login({ email, password: 'another passphrase' })
    const unknown = await login({ email: newEmail(), password: PASSWORD })
    for (const answer of [wrong, unknown]) isRefused(answer, 401, 'invalid_credentials')
    assert.is(wrong.body.detail, unknown.body.detail)
    isRefused(await login({ email }), 400, 'validation_failed', 'password')
  })

  it('refuses an invalid token where one is needed, and ignores it on public routes', async ({ bed }) => {
    const unknown = 'x'.repeat(43)
    for (const authorization of [
      'Bearer',
      'Bearer x',
      `Bearer ${unknown}`,
      `Basic ${unknown}`,
      'Bearer a b',
      '',
    ]) {
      const headers = { authorization }
      isRefused(await bed.ask('GET', '/me', { headers }), 401, 'unauthenticated')
      isRefused(
        await bed.ask('POST', '/auth/login', { headers, body: { email: newEmail(), password: 'x' } }),
        401,
        'invalid_credentials',
      )
    }
  })

  it('ends a session by logout, and no other', async ({ bed }) => {
    const { email, token } = await register(bed, 'creator')
    const other = String(
      (await bed.ask('POST', '/auth/login', { body: { email, password: PASSWORD } })).body.token,
    )
    assert.is((await bed.ask('POST', '/auth/logout', { token })).status, 204)
    isRefused(await bed.ask('GET', '/me', { token }), 401, 'unauthenticated')
    assert.is((await bed.ask('GET', '/me', { token: other })).status, 200)
  })

  it('ends every other session with a new password', async ({ bed }) => {
    const { email, token } = await register(bed, 'creator')
    const login = (password: string) => bed.ask('POST', '/auth/login', { body: { email, password } })
    const other = String((await login(PASSWORD)).body.token)
    const change = (current_password: string, new_password: string) =>
      bed.ask('POST', '/auth/password', { token, body: { current_password, new_password } })
    isRefused(await change('not the password', 'the second passphrase'), 401, 'invalid_credentials')
    isRefused(await change(PASSWORD, 'short'), 400, 'validation_failed', 'new_password')
    assert.is((await bed.ask('GET', '/me', { token: other })).status, 200)
    assert.is((await change(PASSWORD, 'the second passphrase')).status, 204)
    assert.is((await bed.ask('GET', '/me', { token })).status, 200)
    isRefused(await bed.ask('GET', '/me', { token: other }), 401, 'unauthenticated')
    isRefused(await login(PASSWORD), 401, 'invalid_credentials')
    assert.is((await login('the second passphrase')).status, 200)
  })

  it('ends sessions after 30 days', async ({ bed }) => {
    const started = bed.clock.now()
    const { email, token } = await register(bed, 'creator')
    bed.clock.pass(30 * DAY - 1)
    assert.is((await bed.ask('GET', '/me', { token })).status, 200)
    bed.clock.pass(1)
    isRefused(await bed.ask('GET', '/me', { token }), 401, 'unauthenticated')
    await bed.ask('POST', '/auth/login', { body: { email, password: PASSWORD } })
    const sessions = await bed.platform.database.reader
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .select('sessions.id')
      .where('users.email', '=', email)
      .execute()
    assert.is(sessions.length, 1, 'the expired one is gone')
    bed.clock.set(new Date(started).toISOString())
  })

  it('changes the display name, and gives a merchant no payout destination', async ({ bed }) => {
    const { token } = await register(bed, 'merchant')
    const patch = (body: unknown) => bed.ask('PATCH', '/me', { token, body })
    const changed = await patch({ display_name: ' Bilal ' })
    assert.is(changed.body.display_name, 'Bilal')
    assert.equal((await bed.ask('GET', '/me', { token })).body, changed.body)
    assert.equal((await patch({})).body, changed.body)
    const destination = { iban: IBAN, account_title: 'B' }
    isRefused(
      await patch({ payout_destination: destination }),
      400,
      'validation_failed',
      'payout_destination',
    )
  })

  it.run()
}
