import * as assert from 'uvu/assert'
import { changeUser } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { auditOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { webSuite } from '../test/testkit/web.ts'
import { isRefused, logIn, newEmail, PASSWORD, register } from '../test/testkit/web-people.ts'
import { hashPassword } from './passwords.ts'

for (const dialect of proofDialects()) {
  const it = webSuite(`users on ${dialect}`, dialect)

  it('registers a creator and answers a token that works, which is not kept', async ({ bed }) => {
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
    const { platform } = bed
    const stored = JSON.stringify([await rowsOf(platform, 'users'), await rowsOf(platform, 'sessions')])
    assert.not.ok(stored.includes(token) || stored.includes(PASSWORD))
    assert.match(stored, /\$argon2id\$/)
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

  it('refuses registrations that make no sense', async ({ bed }) => {
    const good = { email: newEmail(), password: PASSWORD, role: 'creator', display_name: 'A' }
    const odd: [field: string, values: unknown[]][] = [
      ['email', ['no one', `${'x'.repeat(250)}@example.pk`]],
      ['password', ['too short', 'x'.repeat(257)]],
      ['role', ['admin']],
      ['display_name', ['  ', 'a\u0000b', '\u200b', '\u2060 \u00ad', 'Sana\u202emoc.live']],
      ['suspended', [false]],
    ]
    for (const [field, values] of odd) {
      for (const value of values) {
        const body = { ...good, [field]: value }
        isRefused(await bed.ask('POST', '/auth/register', { body }), 400, 'validation_failed', field)
        const overTrpc = await bed.ask('POST', '/trpc/auth.register', { body })
        assert.is(overTrpc.status, 400)
        assert.match(JSON.stringify(overTrpc.body), '"code":"validation_failed"')
      }
    }
  })

  it('refuses weak passwords for new accounts and for changes, and names the field', async ({ bed }) => {
    const email = newEmail()
    const registerWith = (password: string) =>
      bed.ask('POST', '/auth/register', {
        body: { email, password, role: 'creator', display_name: 'Bilal Ahmed Shah' },
      })
    for (const password of [email, 'bilalahmedshah99']) {
      const answer = await registerWith(password)
      isRefused(answer, 400, 'validation_failed', 'password')
      assert.match((answer.body.issues as { message: string }[])[0]?.message ?? '', /e-mail or display name/)
      assert.not.match(JSON.stringify(answer.body), password)
    }
    const registered = await registerWith(PASSWORD)
    assert.is(registered.status, 201)
    const token = String(registered.body.token)
    const change = { current_password: PASSWORD, new_password: 'Bilal.Ahmed-Shah' }
    const refused = await bed.ask('POST', '/auth/password', { token, body: change })
    isRefused(refused, 400, 'validation_failed', 'new_password')
    assert.is((await logIn(bed, email)).status, 200, 'nothing has changed')
  })

  it('lets a weak password that was set earlier log in', async ({ bed }) => {
    const { email, id } = await register(bed, 'creator')
    const password_hash = await hashPassword('password123')
    await changeUser(bed.platform, id, { password_hash })
    assert.is((await logIn(bed, email, { password: 'password123' })).status, 200)
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
    const good = await logIn(bed, email.toUpperCase())
    assert.is(good.status, 200)
    assert.is((await bed.ask('GET', '/me', { token: String(good.body.token) })).status, 200)
    const wrong = await logIn(bed, email, { password: 'another passphrase' })
    const unknown = await logIn(bed, newEmail())
    for (const answer of [wrong, unknown]) isRefused(answer, 401, 'invalid_credentials')
    assert.is(wrong.body.detail, unknown.body.detail)
  })

  it('ends every other session with a new password, and records the change', async ({ bed }) => {
    const { email, token, id } = await register(bed, 'creator')
    const other = String((await logIn(bed, email)).body.token)
    const change = (current_password: string, new_password: string) =>
      bed.ask('POST', '/auth/password', { token, body: { current_password, new_password } })
    isRefused(await change('not the password', 'the second passphrase'), 401, 'invalid_credentials')
    isRefused(await change(PASSWORD, 'short'), 400, 'validation_failed', 'new_password')
    assert.is((await bed.ask('GET', '/me', { token: other })).status, 200)
    assert.equal(await auditOf(bed.platform, { actor: id }), [])
    assert.is((await change(PASSWORD, 'the second passphrase')).status, 204)
    assert.is((await bed.ask('GET', '/me', { token })).status, 200)
    isRefused(await bed.ask('GET', '/me', { token: other }), 401, 'unauthenticated')
    isRefused(await logIn(bed, email), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, { password: 'the second passphrase' })).status, 200)
    const audit = await auditOf(bed.platform, { actor: id })
    assert.equal(pluckAll(audit, 'action', 'subject_id', 'before', 'after'), [
      ['user.change_password', id, null, { sessions_ended: 'all others' }],
    ])
  })

  it('changes the display name, and gives a merchant no payout destination', async ({ bed }) => {
    const { token } = await register(bed, 'merchant')
    const patch = (body: unknown) => bed.ask('PATCH', '/me', { token, body })
    const changed = await patch({ display_name: ' Bilal ' })
    assert.is(changed.body.display_name, 'Bilal')
    assert.equal((await bed.ask('GET', '/me', { token })).body, changed.body)
    assert.equal((await patch({})).body, changed.body)
    const payout_destination = { iban: 'PK36SCBL0000001123456702', account_title: 'B' }
    isRefused(await patch({ payout_destination }), 400, 'validation_failed', 'payout_destination')
  })

  it.run()
}
