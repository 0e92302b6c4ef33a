import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { applyToOffer } from '../applications/applications.service.ts'
import { appRouter } from '../http/router.ts'
import { showMail } from '../notifications/channels/mail/operator-mails.service.ts'
import { setOfferStatus } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { connectStore } from '../stores/stores.service.ts'
import { accessOf, addLiveOffer } from '../test/testkit/listings.ts'
import { outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openRival } from '../test/testkit/rival.ts'
import { auditOf, rowOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { passwordResetsIdle, requestPasswordReset } from './account-recovery.service.ts'
import { login } from './credentials.service.ts'
import { setPassword } from './users.service.ts'

const PASSWORD = 'a long passphrase'
const OTHER = 'another passphrase'

for (const dialect of proofDialects()) {
  const it = suite(`account recovery on ${dialect}`)
  let bed: Testbed
  let count = 0
  it.before(async () => {
    bed = await openTestbed(dialect)
  })
  it.after(() => bed.close())

  const as = (actor: Actor | null, platform = bed.platform) =>
    appRouter.createCaller(requestOf(platform, actor))
  const anyone = () => as(null)

  async function register(role: 'creator' | 'merchant' = 'creator') {
    count += 1
    const email = `person${count}@example.pk`
    const account = { email, password: PASSWORD, role, display_name: 'Sana' }
    const { id } = (await anyone().auth.register(account)).user
    const session = await rowOf(bed.platform, 'sessions', { user_id: id })
    const actor: Actor = { userId: id, role, sessionId: session.id }
    return { id, email, actor }
  }

  const mails = (userId: string, kind: string) => rowsOf(bed.platform, 'mails', { user_id: userId, kind })

  /** The token in the newest mail of this kind, as the developer reads it. */
  async function tokenOf(userId: string, kind: string): Promise<string> {
    const mail = (await mails(userId, kind)).at(-1)
    const { text } = await showMail(bed.platform, mail?.id ?? '')
    return /#token=([\w-]{43})\n/.exec(text)?.[1] ?? ''
  }

  async function requestReset(email: string): Promise<void> {
    await anyone().auth.requestPasswordReset({ email })
    await passwordResetsIdle(bed.platform)
  }

  const reset = (token: string, new_password = OTHER) =>
    outcomeOf(anyone().auth.resetPassword({ token, new_password }))
  const logsIn = (email: string, password: string) => outcomeOf(login(bed.platform, email, password))

  it('resets a password once by the mailed link, which ends every session and verifies the address', async () => {
    const { id, email, actor } = await register()
    await login(bed.platform, email, PASSWORD)
    await requestReset(email.toUpperCase())
    const token = await tokenOf(id, 'password_reset')
    assert.is(token.length, 43)
    const tokens = await rowsOf(bed.platform, 'account_tokens', { user_id: id }, 'token_hash')
    const stored = JSON.stringify([tokens, await rowsOf(bed.platform, 'mails', { user_id: id })])
    assert.not.match(stored, token, 'only its hash, and encrypted in the mail')
    assert.match(stored, 'password_reset')
    assert.is(await reset(token, email), 'validation_failed', 'a weak password uses nothing up')
    assert.is(await reset(token), 'ok')
    assert.equal([await logsIn(email, PASSWORD), await logsIn(email, OTHER)], ['invalid_credentials', 'ok'])
    const sessions = await rowsOf(bed.platform, 'sessions', { user_id: id })
    assert.is(sessions.length, 1, 'only that of the log-in after it')
    assert.is((await as(actor).users.me({})).email_verified_at, new Date(bed.clock.now()).toISOString())
    assert.equal(pluck(await auditOf(bed.platform, { subject_id: id }), 'action'), ['user.reset_password'])
    assert.is((await mails(id, 'password_changed')).length, 1)
    assert.is(await reset(token), 'validation_failed', 'used')
  })

  it('answers alike for unknown and suspended accounts, and mails nothing', async () => {
    const { id, email } = await register()
    await setSuspended(bed.platform, id, true)
    const answers = [
      await anyone().auth.requestPasswordReset({ email }),
      await anyone().auth.requestPasswordReset({ email: 'no-one@example.pk' }),
    ]
    await passwordResetsIdle(bed.platform)
    assert.equal(answers, [{ accepted: true }, { accepted: true }])
    assert.equal(await mails(id, 'password_reset'), [])
  })

  it('reads nothing of the account before it answers', async () => {
    const { id, email } = await register()
    let reads = 0
    const watched = {
      ...bed.platform,
      get database() {
        reads += 1
        return bed.platform.database
      },
    }
    requestPasswordReset(watched, email)
    assert.is(reads, 0)
    await passwordResetsIdle(watched)
    assert.ok(reads > 0)
    assert.is((await mails(id, 'password_reset')).length, 1)
  })

  it('refuses an expired, replaced, foreign or malformed token, and one after a suspension or another password', async () => {
    const { id, email } = await register()
    await requestReset(email)
    const first = await tokenOf(id, 'password_reset')
    await requestReset(email)
    const second = await tokenOf(id, 'password_reset')
    assert.is(await reset(second, 'short'), 'validation_failed')
    const verification = await tokenOf(id, 'verify_email')
    for (const wrong of [first, verification, 'x', '', 'x'.repeat(43)])
      assert.is(await reset(wrong), 'validation_failed', wrong)
    bed.clock.pass(HOUR)
    assert.is(await reset(second), 'validation_failed', 'expired')
    await requestReset(email)
    const third = await tokenOf(id, 'password_reset')
    await setPassword(bed.platform, id, 'the third passphrase')
    assert.is(await reset(third), 'validation_failed', 'another password')
    bed.clock.pass(HOUR)
    await requestReset(email)
    const fourth = await tokenOf(id, 'password_reset')
    await setSuspended(bed.platform, id, true)
    assert.is(await reset(fourth), 'validation_failed', 'suspended')
    assert.is(await logsIn(email, 'the third passphrase'), 'account_suspended')
  })

  it('lets one of several resets with the same token succeed', async () => {
    const { id, email } = await register()
    await requestReset(email)
    const token = await tokenOf(id, 'password_reset')
    const outcomes = await Promise.all([1, 2, 3].map((n) => reset(token, `passphrase number ${n}`)))
    assert.equal(outcomes.sort(), ['ok', 'validation_failed', 'validation_failed'])
  })

  it('counts requests of several processes at the same time, and the link mailed last is valid', async () => {
    const { id, email } = await register()
    const rival = await openRival(bed)
    try {
      for (let n = 0; n < 4; n += 1) {
        requestPasswordReset(bed.platform, email)
        requestPasswordReset(rival.platform, email)
      }
      await Promise.all([passwordResetsIdle(bed.platform), passwordResetsIdle(rival.platform)])
    } finally {
      await rival.close()
    }
    assert.is((await mails(id, 'password_reset')).length, 5)
    const purpose = { user_id: id, purpose: 'password_reset' } as const
    assert.is((await rowsOf(bed.platform, 'account_tokens', purpose, 'token_hash')).length, 1)
  })

  it('mails at most five links an hour to an address, and answers alike after that', async () => {
    const { id, email } = await register()
    for (let n = 0; n < 7; n += 1) await requestReset(email)
    assert.is((await mails(id, 'password_reset')).length, 5)
    assert.is(await reset(await tokenOf(id, 'password_reset')), 'ok', 'the last mailed link is valid')
    bed.clock.pass(HOUR + 1)
    await requestReset(email)
    assert.is((await mails(id, 'password_reset')).length, 6)
  })

  it('verifies an address once by the mailed link, within a day', async () => {
    const { id, actor } = await register()
    assert.is((await as(actor).users.me({})).email_verified_at, null)
    const token = await tokenOf(id, 'verify_email')
    assert.is(await outcomeOf(anyone().auth.verifyEmail({ token })), 'ok')
    const { email_verified_at } = await as(actor).users.me({})
    assert.is(email_verified_at, new Date(bed.clock.now()).toISOString())
    assert.is(await outcomeOf(anyone().auth.verifyEmail({ token })), 'validation_failed')
    await as(actor).auth.resendVerification({})
    assert.is((await mails(id, 'verify_email')).length, 1, 'nothing is sent to a verified address')
    const other = await register()
    const late = await tokenOf(other.id, 'verify_email')
    bed.clock.pass(DAY)
    assert.is(await outcomeOf(anyone().auth.verifyEmail({ token: late })), 'validation_failed')
  })

  it('mails the verification again, five times an hour, and refuses where no mail is sent', async () => {
    const { id, actor } = await register()
    const first = await tokenOf(id, 'verify_email')
    const resend = (platform = bed.platform) => outcomeOf(as(actor, platform).auth.resendVerification({}))
    const off = { ...bed.platform, config: { ...bed.platform.config, SMTP_URL: 'off' as const } }
    assert.is(await resend(off), 'conflict')
    for (let n = 0; n < 4; n += 1) assert.is(await resend(), 'ok')
    assert.is(await resend(), 'rate_limited')
    assert.is(await outcomeOf(anyone().auth.verifyEmail({ token: first })), 'validation_failed')
    const last = await tokenOf(id, 'verify_email')
    assert.is(await outcomeOf(anyone().auth.verifyEmail({ token: last })), 'ok')
  })

  it('keeps unverified accounts from going live, applying and being paid, where it is required', async () => {
    const { platform } = bed
    const strict = { ...platform, config: { ...platform.config, REQUIRE_VERIFIED_EMAIL: true } }
    const merchant = await register('merchant')
    const creator = await register()
    const { domain, secret } = accessOf(merchant.actor)
    await connectStore(platform, merchant.id, { shop_domain: domain, webhook_secret: secret })
    const liveOffer = async () => (await addLiveOffer(platform, merchant.actor)).id
    const goLive = async () => {
      const id = await liveOffer()
      await setOfferStatus(platform, merchant.id, id, 'paused')
      return outcomeOf(as(merchant.actor, strict).offers.setStatus({ id, status: 'live' }))
    }
    const apply = async () =>
      outcomeOf(applyToOffer(strict, creator.id, await liveOffer(), { message: null, promotion_url: null }))
    const payout_destination = { iban: 'PK36SCBL0000001123456702', account_title: 'SANA' }
    const setDestination = () => outcomeOf(as(creator.actor, strict).users.updateMe({ payout_destination }))
    const outcomes = [await goLive(), await apply(), await setDestination()]
    assert.equal(outcomes, Array(3).fill('email_not_verified'))
    // They can look around, and change what concerns no one else.
    assert.is(await outcomeOf(as(creator.actor, strict).users.updateMe({ display_name: 'Sana M.' })), 'ok')
    assert.is(await outcomeOf(as(creator.actor, strict).applications.list({})), 'ok')
    assert.is(await outcomeOf(setOfferStatus(strict, merchant.id, await liveOffer(), 'ended')), 'ok')

    await anyone().auth.verifyEmail({ token: await tokenOf(creator.id, 'verify_email') })
    assert.equal([await apply(), await setDestination()], ['ok', 'ok'])
    await anyone().auth.verifyEmail({ token: await tokenOf(merchant.id, 'verify_email') })
    assert.is(await goLive(), 'ok')
  })

  it.run()
}
