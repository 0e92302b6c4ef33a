import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rotateKeys } from '../jobs/rotate-keys.ts'
import { checkAppKey } from '../platform/crypto/key-mark.ts'
import { createAppKeys } from '../platform/crypto/key-ring.ts'
import type { Tx } from '../platform/database/database.ts'
import { codeOf } from '../test/testkit/authenticator.ts'
import { brokenRows } from '../test/testkit/marketplace.ts'
import { mailFactsOf, outcomeOf } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openRival } from '../test/testkit/rival.ts'
import { auditOf, rowOf, rowsOf } from '../test/testkit/rows.ts'
import { MINUTE, TESTBED_KEY, withKeys } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { isRefused, logIn, PASSWORD, register } from '../test/testkit/web-people.ts'
import { login } from './credentials.service.ts'
import { confirmTotp, resetSecondFactor } from './second-factor.service.ts'

const STEP = 30_000

const start = (bed: WebTestbed, token: string) => bed.ask('POST', '/auth/totp', { token })
const startedSecret = async (bed: WebTestbed, token: string) => String((await start(bed, token)).body.secret)
const confirm = (bed: WebTestbed, token: string, code: string) =>
  bed.ask('POST', '/auth/totp/confirm', { token, body: { code } })
const disable = (bed: WebTestbed, token: string, code: string) =>
  bed.ask('POST', '/auth/totp/disable', { token, body: { code } })
const stepUp = (bed: WebTestbed, token: string, code?: string, password = PASSWORD) =>
  bed.ask('POST', '/auth/step-up', { token, body: { password, code } })
const renew = (bed: WebTestbed, token: string, code: string) =>
  bed.ask('POST', '/auth/totp/recovery-codes', { token, body: { code } })
const changePassword = (bed: WebTestbed, token: string) => {
  const body = { current_password: PASSWORD, new_password: 'another passphrase' }
  return bed.ask('POST', '/auth/password', { token, body })
}

/** The clock moves on, so that the code of its time was not used yet. */
async function enroll(bed: WebTestbed, role?: 'merchant') {
  const person = await register(bed, role)
  const secret = await startedSecret(bed, person.token)
  const answer = await confirm(bed, person.token, codeOf(secret, bed.clock))
  assert.is(answer.status, 200, JSON.stringify(answer.body))
  bed.clock.pass(STEP)
  return { ...person, secret, recovery: answer.body.recovery_codes as string[] }
}

const auditsOf = async ({ platform }: WebTestbed, userId: string) =>
  pluckAll(await auditOf(platform, { subject_id: userId }), 'actor', 'action', 'reason', 'after')

for (const dialect of proofDialects()) {
  const it = webSuite(`second factors on ${dialect}`, dialect)

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
    const password = 'not the password'
    isRefused(await logIn(bed, email, { password }), 401, 'invalid_credentials')
    bed.clock.pass(STEP)
    const code = codeOf(secret, bed.clock)
    isRefused(await logIn(bed, email, { code, password }), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, { code })).status, 200, 'a wrong password uses up no code')
    assert.equal(await auditsOf(bed, id), [[id, 'user.enable_second_factor', null, { second_factor: true }]])
  })

  it('are replaced by a new start until they are confirmed, by a code that opens no log-in', async ({
    bed,
  }) => {
    const { token, email } = await register(bed)
    isRefused(await confirm(bed, token, '123456'), 409, 'conflict')
    const [first, second] = [await startedSecret(bed, token), await startedSecret(bed, token)]
    assert.is.not(first, second)
    isRefused(await confirm(bed, token, codeOf(first, bed.clock)), 401, 'invalid_credentials')
    const code = codeOf(second, bed.clock)
    assert.is((await confirm(bed, token, code)).status, 200)
    isRefused(await logIn(bed, email, { code }), 401, 'invalid_credentials')
  })

  it('accept a code once, and those of one step before and after', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    bed.clock.pass(10 * MINUTE)
    const statuses: number[] = []
    for (const away of [-2, 2, -1, -1, 1, 0, 1])
      statuses.push((await logIn(bed, email, { code: codeOf(secret, bed.clock, away) })).status)
    assert.equal(statuses, [401, 401, 200, 401, 200, 401, 401])
    const spaced = codeOf(secret, bed.clock, 2).replace(/^.../, '$& ')
    bed.clock.pass(STEP)
    assert.is((await logIn(bed, email, { code: spaced })).status, 200)
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
    const [code = '', second = ''] = recovery
    isRefused(await logIn(bed, stranger.email, { code }), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, { code })).status, 200)
    for (const wrong of [code, 'AAAA-AAAA-AAAA-AAAA'])
      isRefused(await logIn(bed, email, { code: wrong }), 401, 'invalid_credentials')
    const typed = second.toLowerCase().replaceAll('-', ' ')
    assert.is((await logIn(bed, email, { code: typed })).status, 200)
    assert.equal((await auditsOf(bed, id)).slice(1), [
      [id, 'user.use_recovery_code', null, { second_factor: true, recovery_codes_left: 9 }],
      [id, 'user.use_recovery_code', null, { second_factor: true, recovery_codes_left: 8 }],
    ])
  })

  it('have new recovery codes for a code, which end the former ones', async ({ bed }) => {
    const { email, token, id, secret, recovery } = await enroll(bed)
    isRefused(await renew(bed, token, '000000'), 401, 'invalid_credentials')
    const code = codeOf(secret, bed.clock)
    const answer = await renew(bed, token, code)
    assert.is(answer.status, 200)
    const renewed = answer.body.recovery_codes as string[]
    assert.is(new Set([...recovery, ...renewed]).size, 20)
    isRefused(await renew(bed, token, code), 401, 'invalid_credentials')
    isRefused(await logIn(bed, email, { code: recovery[0] }), 401, 'invalid_credentials')
    assert.is((await logIn(bed, email, { code: renewed[0] })).status, 200)
    const [, made] = await auditsOf(bed, id)
    assert.equal(made, [id, 'user.renew_recovery_codes', null, { second_factor: true }])
    // Without the phone, with one of the last codes.
    assert.is((await renew(bed, token, renewed[1] ?? '')).status, 200)
    isRefused(await logIn(bed, email, { code: renewed[2] }), 401, 'invalid_credentials')
    isRefused(await renew(bed, (await register(bed)).token, code), 404, 'not_found')
  })

  it('have ten recovery codes after several renewals at the same time', async ({ bed }) => {
    const { id, token, recovery } = await enroll(bed)
    const renewals = recovery.slice(0, 4).map((code) => renew(bed, token, code))
    const answers = (await Promise.all(renewals)).map(({ status }) => status)
    assert.ok(answers.includes(200) && answers.every((status) => status === 200 || status === 401))
    assert.is((await rowsOf(bed.platform, 'recovery_codes', { user_id: id }, 'code_hash')).length, 10)
  })

  it('are named in a mail at each change, and when a recovery code is used', async ({ bed }) => {
    const { id, email, token, secret, recovery } = await enroll(bed)
    await logIn(bed, email, { code: recovery[0] })
    await renew(bed, token, codeOf(secret, bed.clock))
    bed.clock.pass(STEP)
    await stepUp(bed, token, codeOf(secret, bed.clock))
    assert.is((await disable(bed, token, codeOf(secret, bed.clock, 1))).status, 204)
    const mails = await mailFactsOf(bed.platform, id, 'second_factor_changed')
    assert.equal(pluck(mails, 'change'), ['on', 'code_used', 'codes_renewed', 'off'])
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
    const change = (token: string, fields: object) =>
      bed.ask('PATCH', '/me', { token, body: { ...fields, current_password: PASSWORD } })
    const destination = (fields: object = {}) =>
      change(token, { payout_destination: { iban, account_title: 'A' }, ...fields })
    isRefused(await destination(), 403, 'step_up_required')
    isRefused(await change(merchant.token, { billing_account: { iban } }), 403, 'step_up_required')
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

  it('make no session fresh before they are on, and later only the one that steps up', async ({ bed }) => {
    const { token, email } = await register(bed)
    assert.is((await stepUp(bed, token)).status, 204)
    const secret = await startedSecret(bed, token)
    assert.is((await confirm(bed, token, codeOf(secret, bed.clock))).status, 200)
    isRefused(await changePassword(bed, token), 403, 'step_up_required')
    bed.clock.pass(STEP)
    const other = String((await logIn(bed, email, { code: codeOf(secret, bed.clock) })).body.token)
    bed.clock.pass(STEP)
    assert.is((await stepUp(bed, token, codeOf(secret, bed.clock))).status, 204)
    isRefused(await changePassword(bed, other), 403, 'step_up_required')
  })

  it('are needed by a log-in that began before they were on', async ({ bed }) => {
    const { email, token, id } = await register(bed)
    const secret = await startedSecret(bed, token)
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
    assert.is(await outcomeOf(login(confirmedFirst, email, PASSWORD)), 'second_factor_required')
  })

  it('are needed by no one who has none', async ({ bed }) => {
    const { email, token } = await register(bed)
    assert.is(
      (await logIn(bed, email, { code: '123456' })).status,
      200,
      'a code that is not needed is ignored',
    )
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
    const factors = await rowsOf(bed.platform, 'second_factors', {}, 'user_id')
    const codes = await rowsOf(bed.platform, 'recovery_codes', { user_id: id }, 'code_hash')
    assert.is(codes.length, 10)
    const stored = JSON.stringify([factors, codes])
    for (const text of [secret, ...recovery, ...recovery.map((code) => code.replaceAll('-', ''))]) {
      assert.not.ok(stored.includes(text))
    }
  })

  it('do not open in the row of another user, where only recovery codes help', async ({ bed }) => {
    const mine = await enroll(bed)
    const theirs = await enroll(bed)
    const factorOf = (user_id: string) => rowOf(bed.platform, 'second_factors', { user_id }, 'user_id')
    const [moved, own] = [await factorOf(mine.id), await factorOf(theirs.id)]
    const put = ({ secret_encrypted }: typeof moved) =>
      bed.platform.database.transaction((tx) =>
        tx.updateTable('second_factors').set({ secret_encrypted }).where('user_id', '=', theirs.id).execute(),
      )
    await put(moved)
    const enter = (code = '') => logIn(bed, theirs.email, { code })
    isRefused(await enter(codeOf(mine.secret, bed.clock)), 503, 'unavailable')
    assert.is((await enter(theirs.recovery[0])).status, 200)
    const broken = await brokenRows(bed.platform, 'sealed-second-factors')
    assert.equal(broken, [`second factor of user ${theirs.id}`])
    await put(own)
    assert.is((await enter(codeOf(theirs.secret, bed.clock))).status, 200)
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
    const later = withKeys(bed.platform, createAppKeys(Buffer.alloc(32, 42)))
    const code = codeOf(secret, bed.clock)
    assert.is(await outcomeOf(login(later, email, PASSWORD, '', { code })), 'ok')
  })

  it.run()

  const limited = suite<{ bed: WebTestbed }>(`guesses at codes on ${dialect}`)
  limited.before.each(async (world) => {
    world.bed = await openWebTestbed(dialect, { RATE_LIMIT_AUTH: '3', TRUST_PROXY: 'loopback' })
  })
  limited.after.each(({ bed }) => bed.close())

  /** Logs in once from each address, which is given by its last number. */
  const tries = async (bed: WebTestbed, email: string, guesses: [address: number, code?: string][]) => {
    const outcomes: string[] = []
    for (const [address, code] of guesses)
      outcomes.push(await outcomeOf(login(bed.platform, email, PASSWORD, `198.51.100.${address}`, { code })))
    return outcomes
  }
  const WRONG = '000000'

  limited('are limited by account from all addresses; a missing code resets nothing', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    const guessing = [0, 1, 2].flatMap((address): [number, string?][] => [[address, WRONG], [address]])
    const outcomes = await tries(bed, email, [...guessing, [9, codeOf(secret, bed.clock)]])
    const each = ['invalid_credentials', 'second_factor_required']
    assert.equal(outcomes, [...each, ...each, ...each, 'rate_limited'])
  })

  limited('lock no owner out: a recovery code has a budget of its address', async ({ bed }) => {
    const { email, recovery, secret } = await enroll(bed)
    const guessing = [0, 1, 2].flatMap((address): [number, string][] => [
      [address, WRONG],
      [address, 'ABCD-EFGH-IJKL-MNOP'],
    ])
    assert.equal(await tries(bed, email, guessing), Array(6).fill('invalid_credentials'))
    const owner = await tries(bed, email, [
      [7, codeOf(secret, bed.clock)],
      [7, recovery[0]],
    ])
    assert.equal(owner, ['rate_limited', 'ok'])
  })

  limited('count as wrong passwords do, and a missing code does not', async ({ bed }) => {
    const { email, secret } = await enroll(bed)
    const missing = await tries(bed, email, [[1], [1], [1], [1], [1]])
    assert.equal(missing, Array(5).fill('second_factor_required'))
    const guesses = await tries(bed, email, [
      [1, WRONG],
      [1, WRONG],
    ])
    assert.equal(guesses, Array(2).fill('invalid_credentials'))
    const wrong = login(bed.platform, email, 'not the password', '198.51.100.1')
    assert.is(await outcomeOf(wrong), 'invalid_credentials')
    assert.equal(await tries(bed, email, [[1], [2, codeOf(secret, bed.clock)]]), ['rate_limited', 'ok'])
  })

  limited.run()
}
