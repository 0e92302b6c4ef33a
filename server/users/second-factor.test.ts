import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rotateKeys } from '../jobs/rotate-keys.ts'
import { checkAppKey } from '../platform/crypto/key-mark.ts'
import { createAppKeys } from '../platform/crypto/key-ring.ts'
import type { Tx } from '../platform/database/database.ts'
import { codeOf } from '../test/testkit/authenticator.ts'
import { brokenRows } from '../test/testkit/marketplace.ts'
import { outcomeOf } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openRival } from '../test/testkit/rival.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { MINUTE, TESTBED_KEY, withKeys } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { isRefused, PASSWORD, register } from '../test/testkit/web-people.ts'
import { login } from './credentials.service.ts'
import { confirmTotp, resetSecondFactor } from './second-factor.service.ts'

const STEP = 30_000

const start = (bed: WebTestbed, token: string) => bed.ask('POST', '/auth/totp', { token })
const confirm = (bed: WebTestbed, token: string, code: string) =>
  bed.ask('POST', '/auth/totp/confirm', { token, body: { code } })
const disable = (bed: WebTestbed, token: string, code: string) =>
  bed.ask('POST', '/auth/totp/disable', { token, body: { code } })
const stepUp = (bed: WebTestbed, token: string, code?: string, password = PASSWORD) =>
  bed.ask('POST', '/auth/step-up', { token, body: { password, code } })
const logIn = (bed: WebTestbed, email: string, code?: string, password = PASSWORD) =>
  bed.ask('POST', '/auth/login', { body: { email, password, code } })
const changePassword = (bed: WebTestbed, token: string) => {
  const body = { current_password: PASSWORD, new_password: 'another passphrase' }
  return bed.ask('POST', '/auth/password', { token, body })
}

/** The clock moves on, so that the code of its time was not used yet. */
async function enroll(bed: WebTestbed, role?: 'merchant') {
  const person = await register(bed, role)
  const { secret } = (await start(bed, person.token)).body as { secret: string }
  const answer = await confirm(bed, person.token, codeOf(secret, bed.clock))
  assert.is(answer.status, 200, JSON.stringify(answer.body))
  bed.clock.pass(STEP)
  return { ...person, secret, recovery: answer.body.recovery_codes as string[] }
}

async function auditsOf({ platform }: WebTestbed, userId: string) {
  const rows = await rowsOf(platform, 'audit_entries', { subject_id: userId })
  return rows.map(({ actor, action, reason, after }) => [actor, action, reason, JSON.parse(after ?? 'null')])
}

for (const dialect of proofDialects()) {
  const it = suite<{ bed: WebTestbed }>(`second factors on ${dialect}`)

  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect)
  })
  it.after(({ bed }) => bed.close())

  it('are set up with a code, and are needed from then on', async ({ bed }) => {
    const { email, token, id } = await register(bed)
    const me = async () => (await bed.ask('GET', '/me', { token })).body.second_factor
    const started = await start(bed, token)
    assert.is(started.status, 200)
    const { secret, otpauth_url } = started.body as { secret: string; otpauth_url: string }
    assert.match(secret, /^[A-Z2-7]{32}$/)
    assert.is(new URL(otpauth_url).searchParams.get('secret'), secret)
    assert.is((await logIn(bed, email)).status, 200, 'not on before it is confirmed')
    isRefused(await confirm(bed, token, '000000'), 401, 'invalid_credentials')
    assert.is(await me(), false)

    const confirmed = await confirm(bed, token, codeOf(secret, bed.clock))
    const { recovery_codes } = confirmed.body as { recovery_codes: string[] }
    assert.is(new Set(recovery_codes).size, 10)
    for (const code of recovery_codes) assert.match(code, /^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/)
    assert.is(await me(), true)
    isRefused(await confirm(bed, token, codeOf(secret, bed.clock)), 409, 'conflict')
    isRefused(await start(bed, token), 409, 'conflict')

    isRefused(await logIn(bed, email), 401, 'second_factor_required')
    isRefused(await logIn(bed, email, undefined, 'not the password'), 401, 'invalid_credentials')
    bed.clock.pass(STEP)
    const code = codeOf(secret, bed.clock)
    isRefused(await logIn(bed, email, code, 'not the password'), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, code)).status, 200, 'a wrong password uses up no code')
    assert.equal(await auditsOf(bed, id), [[id, 'user.enable_second_factor', null, { second_factor: true }]])
  })

  it('are replaced by a new start until they are confirmed', async ({ bed }) => {
    const { token } = await register(bed)
    isRefused(await confirm(bed, token, '123456'), 409, 'conflict')
    const first = (await start(bed, token)).body.secret as string
    const second = (await start(bed, token)).body.secret as string
    assert.is.not(first, second)
    isRefused(await confirm(bed, token, codeOf(first, bed.clock)), 401, 'invalid_credentials')
    assert.is((await confirm(bed, token, codeOf(second, bed.clock))).status, 200)
  })

  it('accept a code once, and those of one step before and after', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    bed.clock.pass(10 * MINUTE)
    const at = (away: number) => logIn(bed, email, codeOf(secret, bed.clock, away))
    isRefused(await at(-2), 401, 'invalid_credentials')
    isRefused(await at(2), 401, 'invalid_credentials')
    assert.is((await at(-1)).status, 200)
    isRefused(await at(-1), 401, 'invalid_credentials')
    assert.is((await at(1)).status, 200)
    isRefused(await at(0), 401, 'invalid_credentials')
    isRefused(await at(1), 401, 'invalid_credentials')
    const spaced = codeOf(secret, bed.clock, 2).replace(/^.../, '$& ')
    bed.clock.pass(STEP)
    assert.is((await logIn(bed, email, spaced)).status, 200)
  })

  it('accept the code of the confirmation at no log-in', async ({ bed }) => {
    const { token, email } = await register(bed)
    const secret = (await start(bed, token)).body.secret as string
    const code = codeOf(secret, bed.clock)
    assert.is((await confirm(bed, token, code)).status, 200)
    isRefused(await logIn(bed, email, code), 401, 'invalid_credentials')
  })

  it('accept a code in one of several processes', async ({ bed }) => {
    const { email, secret, recovery } = await enroll(bed)
    const rival = await openRival(bed)
    try {
      for (const code of [codeOf(secret, bed.clock), recovery[0] ?? '']) {
        const tries = [bed.platform, rival.platform, bed.platform, rival.platform]
        const outcomes = await Promise.all(
          tries.map((platform) => outcomeOf(login(platform, email, PASSWORD, '192.0.2.1', { code }))),
        )
        assert.equal(outcomes.sort(), [...Array(3).fill('invalid_credentials'), 'ok'])
      }
    } finally {
      await rival.close()
    }
  })

  it('have recovery codes, each for one log-in', async ({ bed }) => {
    const { email, id, recovery } = await enroll(bed)
    const stranger = await enroll(bed)
    const [first = '', second = ''] = recovery
    isRefused(await logIn(bed, stranger.email, first), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, first)).status, 200)
    isRefused(await logIn(bed, email, first), 401, 'invalid_credentials')
    const typed = second.toLowerCase().replaceAll('-', ' ')
    assert.is((await logIn(bed, email, typed)).status, 200)
    isRefused(await logIn(bed, email, 'AAAA-AAAA-AAAA-AAAA'), 401, 'invalid_credentials')
    assert.equal((await auditsOf(bed, id)).slice(1), [
      [id, 'user.use_recovery_code', null, { second_factor: true, recovery_codes_left: 9 }],
      [id, 'user.use_recovery_code', null, { second_factor: true, recovery_codes_left: 8 }],
    ])
  })

  it('have new recovery codes for a code, which end the former ones', async ({ bed }) => {
    const { email, token, id, secret, recovery } = await enroll(bed)
    const renew = (code: string) => bed.ask('POST', '/auth/totp/recovery-codes', { token, body: { code } })
    isRefused(await renew('000000'), 401, 'invalid_credentials')
    const code = codeOf(secret, bed.clock)
    const answer = await renew(code)
    assert.is(answer.status, 200)
    const renewed = answer.body.recovery_codes as string[]
    assert.is(new Set([...recovery, ...renewed]).size, 20)
    isRefused(await renew(code), 401, 'invalid_credentials')
    isRefused(await logIn(bed, email, recovery[0]), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, renewed[0])).status, 200)
    const [, made] = await auditsOf(bed, id)
    assert.equal(made, [id, 'user.renew_recovery_codes', null, { second_factor: true }])
    // Without the phone, with one of the last codes.
    assert.is((await renew(renewed[1] ?? '')).status, 200)
    isRefused(await logIn(bed, email, renewed[2]), 401, 'invalid_credentials')
    const other = await register(bed)
    const without = await bed.ask('POST', '/auth/totp/recovery-codes', { token: other.token, body: { code } })
    isRefused(without, 404, 'not_found')
  })

  it('have ten recovery codes after several renewals at the same time', async ({ bed }) => {
    const { id, token, recovery } = await enroll(bed)
    const renewals = recovery
      .slice(0, 4)
      .map((code) => bed.ask('POST', '/auth/totp/recovery-codes', { token, body: { code } }))
    const answers = (await Promise.all(renewals)).map(({ status }) => status)
    assert.ok(answers.includes(200) && answers.every((status) => status === 200 || status === 401))
    const { reader } = bed.platform.database
    const codes = await reader.selectFrom('recovery_codes').selectAll().where('user_id', '=', id).execute()
    assert.is(codes.length, 10)
  })

  it('are named in a mail at each change, and when a recovery code is used', async ({ bed }) => {
    const { id, email, token, secret, recovery } = await enroll(bed)
    await logIn(bed, email, recovery[0])
    await bed.ask('POST', '/auth/totp/recovery-codes', { token, body: { code: codeOf(secret, bed.clock) } })
    bed.clock.pass(STEP)
    await stepUp(bed, token, codeOf(secret, bed.clock))
    assert.is((await disable(bed, token, codeOf(secret, bed.clock, 1))).status, 204)
    const mails = await columnsOf(bed.platform, 'mails', ['facts'], {
      user_id: id,
      kind: 'second_factor_changed',
    })
    assertMapped(mails, ({ facts }) => JSON.parse(facts).change, ['on', 'code_used', 'codes_renewed', 'off'])
  })

  it('are turned off with a fresh session and a code', async ({ bed }) => {
    const { email, token, id, secret } = await enroll(bed)
    isRefused(await disable(bed, token, codeOf(secret, bed.clock)), 403, 'step_up_required')
    assert.is((await stepUp(bed, token, codeOf(secret, bed.clock))).status, 204)
    isRefused(await disable(bed, token, codeOf(secret, bed.clock, 5)), 401, 'invalid_credentials')
    const code = codeOf(secret, bed.clock)
    isRefused(await stepUp(bed, token, code), 401, 'invalid_credentials')
    assert.is((await disable(bed, token, code)).status, 204, 'the code of the step-up is enough')
    assert.is((await logIn(bed, email)).status, 200)
    isRefused(await disable(bed, token, codeOf(secret, bed.clock)), 404, 'not_found')
    const [, last] = await auditsOf(bed, id)
    assert.equal(last, [id, 'user.disable_second_factor', null, { second_factor: false }])
    const query = await bed.ask('DELETE', '/auth/totp?code=123456', { token })
    isRefused(query, 400, 'validation_failed')
  })

  it('make a step-up necessary for where money goes, and for the password', async ({ bed }) => {
    const { token, secret } = await enroll(bed)
    const merchant = await enroll(bed, 'merchant')
    const iban = 'PK36SCBL0000001123456702'
    const destination = (body: object = {}) =>
      bed.ask('PATCH', '/me', {
        token,
        body: { payout_destination: { iban, account_title: 'A' }, current_password: PASSWORD, ...body },
      })
    isRefused(await destination(), 403, 'step_up_required')
    const account = { billing_account: { iban }, current_password: PASSWORD }
    isRefused(
      await bed.ask('PATCH', '/me', { token: merchant.token, body: account }),
      403,
      'step_up_required',
    )
    isRefused(await changePassword(bed, token), 403, 'step_up_required')
    assert.is((await bed.ask('PATCH', '/me', { token, body: { display_name: 'B' } })).status, 200)

    isRefused(await stepUp(bed, token), 401, 'second_factor_required')
    isRefused(await stepUp(bed, token, '000000'), 401, 'invalid_credentials')
    isRefused(await stepUp(bed, token, codeOf(secret, bed.clock), 'wrong'), 401, 'invalid_credentials')
    isRefused(await destination(), 403, 'step_up_required')
    assert.is((await stepUp(bed, token, codeOf(secret, bed.clock))).status, 204)
    assert.is((await destination()).status, 200)
    bed.clock.pass(10 * MINUTE - 1)
    assert.is((await destination({ display_name: 'C' })).status, 200)
    bed.clock.pass(1)
    isRefused(await destination(), 403, 'step_up_required')
    assert.is((await stepUp(bed, token, codeOf(secret, bed.clock))).status, 204)
    assert.is((await changePassword(bed, token)).status, 204)
  })

  it('make no session fresh before they are on', async ({ bed }) => {
    const { token } = await register(bed)
    assert.is((await stepUp(bed, token)).status, 204)
    const secret = String((await start(bed, token)).body.secret)
    assert.is((await confirm(bed, token, codeOf(secret, bed.clock))).status, 200)
    isRefused(await changePassword(bed, token), 403, 'step_up_required')
  })

  it('are needed by a log-in that began before they were on', async ({ bed }) => {
    const { email, token, id } = await register(bed)
    const secret = String((await start(bed, token)).body.secret)
    const { database } = bed.platform
    const confirmedFirst = {
      ...bed.platform,
      database: {
        ...database,
        async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
          await confirmTotp(bed.platform, id, codeOf(secret, bed.clock), id)
          return database.transaction(work)
        },
      },
    }
    const outcome = await outcomeOf(login(confirmedFirst, email, PASSWORD))
    assert.is(outcome, 'second_factor_required')
  })

  it('make no other session fresh', async ({ bed }) => {
    const { email, token, secret } = await enroll(bed)
    const other = String((await logIn(bed, email, codeOf(secret, bed.clock))).body.token)
    bed.clock.pass(STEP)
    assert.is((await stepUp(bed, token, codeOf(secret, bed.clock))).status, 204)
    isRefused(await changePassword(bed, other), 403, 'step_up_required')
  })

  it('are needed by no one who has none', async ({ bed }) => {
    const { email, token } = await register(bed)
    assert.is((await logIn(bed, email, '123456')).status, 200, 'a code that is not needed is ignored')
    assert.is((await stepUp(bed, token)).status, 204)
    isRefused(await stepUp(bed, token, undefined, 'wrong'), 401, 'invalid_credentials')
    assert.is((await changePassword(bed, token)).status, 204)
  })

  it('are removed by an operator, with all sessions', async ({ bed }) => {
    const { email, token, id } = await enroll(bed)
    assert.ok(await resetSecondFactor(bed.platform, id, 'lost the phone'))
    assert.not(await resetSecondFactor(bed.platform, id, 'lost the phone'))
    assert.is((await bed.ask('GET', '/me', { token })).status, 401)
    assert.is((await logIn(bed, email)).status, 200)
    const [, ...audits] = await auditsOf(bed, id)
    const after = { second_factor: false, sessions_ended: 'all' }
    assert.equal(audits, [['operator', 'user.reset_second_factor', 'lost the phone', after]])
  })

  it('keep no secret and no code that can be read', async ({ bed }) => {
    const { id, secret, recovery } = await enroll(bed)
    const { reader } = bed.platform.database
    const factors = await reader.selectFrom('second_factors').selectAll().execute()
    const codes = await reader.selectFrom('recovery_codes').selectAll().where('user_id', '=', id).execute()
    assert.is(codes.length, 10)
    const stored = JSON.stringify([factors, codes])
    for (const text of [secret, ...recovery, ...recovery.map((code) => code.replaceAll('-', ''))]) {
      assert.not.ok(stored.includes(text))
    }
  })

  it('do not open in the row of another user, where only recovery codes help', async ({ bed }) => {
    const mine = await enroll(bed)
    const theirs = await enroll(bed)
    const { database } = bed.platform
    const read = () => database.reader.selectFrom('second_factors').selectAll()
    const moved = await read().where('user_id', '=', mine.id).executeTakeFirstOrThrow()
    const own = await read().where('user_id', '=', theirs.id).executeTakeFirstOrThrow()
    const put = ({ secret_encrypted }: typeof moved) =>
      database.transaction((tx) =>
        tx.updateTable('second_factors').set({ secret_encrypted }).where('user_id', '=', theirs.id).execute(),
      )
    await put(moved)
    isRefused(await logIn(bed, theirs.email, codeOf(mine.secret, bed.clock)), 503, 'unavailable')
    assert.is((await logIn(bed, theirs.email, theirs.recovery[0])).status, 200)
    const broken = await brokenRows(bed.platform, 'sealed-second-factors')
    assert.equal(broken, [`second factor of user ${theirs.id}`])
    await put(own)
    assert.is((await logIn(bed, theirs.email, codeOf(theirs.secret, bed.clock))).status, 200)
  })

  it('are sealed with the new key by a rotation, and work on', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    await checkAppKey(bed.platform.database, bed.platform.vault)
    const keys = createAppKeys(Buffer.alloc(32, 42), [TESTBED_KEY])
    const rotated = withKeys(bed.platform, keys)
    const { tables, left } = await rotateKeys(rotated, { dryRun: false, actor: 'operator' })
    const table = tables.find((one) => one.table === 'second_factors')
    assert.ok(table && table.rows > 0 && table.resealed === table.rows)
    assert.equal(left, [])
    const onlyNew = createAppKeys(Buffer.alloc(32, 42))
    const later = withKeys(bed.platform, onlyNew)
    const code = codeOf(secret, bed.clock)
    assert.is(await outcomeOf(login(later, email, PASSWORD, '', { code })), 'ok')
  })

  it.run()

  const limited = suite<{ bed: WebTestbed }>(`guesses at codes on ${dialect}`)
  limited.before.each(async (world) => {
    const settings = { RATE_LIMIT_AUTH: '3', TRUST_PROXY: 'loopback' }
    world.bed = await openWebTestbed(dialect, settings)
  })
  limited.after.each(({ bed }) => bed.close())

  const tryFrom = (bed: WebTestbed, address: string, email: string, code?: string) =>
    login(bed.platform, email, PASSWORD, address, { code })

  limited('are limited by account from all addresses; a missing code resets nothing', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    for (let n = 0; n < 3; n += 1) {
      const address = `198.51.100.${n}`
      assert.is(await outcomeOf(tryFrom(bed, address, email, '000000')), 'invalid_credentials')
      assert.is(await outcomeOf(tryFrom(bed, address, email)), 'second_factor_required')
    }
    const code = codeOf(secret, bed.clock)
    assert.is(await outcomeOf(tryFrom(bed, '198.51.100.9', email, code)), 'rate_limited')
  })

  limited('lock no owner out: a recovery code has a budget of its address', async ({ bed }) => {
    const { email, recovery, secret } = await enroll(bed)
    for (let n = 0; n < 3; n += 1) {
      const address = `198.51.100.${n}`
      assert.is(await outcomeOf(tryFrom(bed, address, email, '000000')), 'invalid_credentials')
      assert.is(await outcomeOf(tryFrom(bed, address, email, 'ABCD-EFGH-IJKL-MNOP')), 'invalid_credentials')
    }
    const owner = '203.0.113.7'
    assert.is(await outcomeOf(tryFrom(bed, owner, email, codeOf(secret, bed.clock))), 'rate_limited')
    assert.is(await outcomeOf(tryFrom(bed, owner, email, recovery[0])), 'ok')
  })

  limited('count as wrong passwords do, and a missing code does not', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    const address = '198.51.100.1'
    for (let n = 0; n < 5; n += 1) {
      assert.is(await outcomeOf(tryFrom(bed, address, email)), 'second_factor_required')
    }
    for (let n = 0; n < 2; n += 1) {
      assert.is(await outcomeOf(tryFrom(bed, address, email, '000000')), 'invalid_credentials')
    }
    const wrong = login(bed.platform, email, 'not the password', address)
    assert.is(await outcomeOf(wrong), 'invalid_credentials')
    assert.is(await outcomeOf(tryFrom(bed, address, email)), 'rate_limited')
    const code = codeOf(secret, bed.clock)
    assert.is(await outcomeOf(tryFrom(bed, '198.51.100.2', email, code)), 'ok')
  })

  limited.run()
}
