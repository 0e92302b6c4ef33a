import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SMTPServerOptions } from 'smtp-server'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Config, readConfig } from '../../../platform/config.ts'
import type { Logger } from '../../../platform/log.ts'
import type { MailServer } from '../../../platform/setting-kinds.ts'
import { type MailServerDouble, smtpError, startMailServer } from '../../../test/testkit/mail-server.ts'
import { addUser, changeUser, outcomeOf } from '../../../test/testkit/people.ts'
import { pluck, pluckAll } from '../../../test/testkit/pluck.ts'
import { proofDialects } from '../../../test/testkit/proof-size.ts'
import { rowsOf } from '../../../test/testkit/rows.ts'
import { DAY, HOUR, openTestbed, type Testbed } from '../../../test/testkit/testbed.ts'
import { mailDeliverer, removeOldMails } from './deliver-mails.service.ts'
import { type NewMail, sendMail } from './mail.service.ts'
import type { MailRow } from './mail.store.ts'
import { type MailTransport, openMailTransport } from './mail-transport.ts'
import { unsubscribeUrl } from './notifications.service.ts'
import { retryMail, showMail } from './operator-mails.service.ts'

const FROM = 'Bazaar <no-reply@bazaar.pk>'

for (const dialect of proofDialects()) {
  const it = suite(`mails on ${dialect}`)
  let bed: Testbed
  let userId: string
  let server: MailServerDouble | undefined
  let transport: MailTransport | undefined

  it.before(async () => {
    bed = await openTestbed(dialect)
  })
  it.before.each(async () => {
    userId = (await addUser(bed.platform, 'creator', 'Ayesha Khan')).userId
    await bed.platform.database.transaction((tx) => tx.deleteFrom('mails').execute())
  })
  it.after.each(async () => {
    transport?.close()
    await server?.close()
    transport = undefined
    server = undefined
  })
  it.after(() => bed.close())

  async function connect(
    options?: SMTPServerOptions,
    change: Partial<MailServer> = {},
  ): Promise<MailTransport> {
    transport?.close()
    await server?.close()
    server = await startMailServer(options)
    const config = readConfig({ SMTP_URL: `smtp://localhost:${server.port}`, MAIL_FROM: FROM })
    const to = { ...(config.SMTP_URL as MailServer), ...change }
    transport = await openMailTransport({ ...config, SMTP_URL: to } as Config, bed.platform.log)
    return transport
  }

  const payoutPaid = (about?: string): NewMail => ({
    ...{ userId, kind: 'payout.paid', facts: { amount: '1250.00' } },
    ...(about !== undefined && { about }),
  })
  const write = (mail: NewMail, platform = bed.platform) =>
    platform.database.transaction((tx) => sendMail(platform, tx, mail))
  const rows = (): Promise<MailRow[]> => rowsOf(bed.platform, 'mails')
  const row = async () => (await rows())[0] as MailRow
  /** The first mail that the server took. */
  const source = () => server?.received[0]?.source ?? ''
  const deliver = async (by: MailTransport, platform = bed.platform) => {
    const deliverer = mailDeliverer(platform, by)
    const started = await deliverer.start()
    await deliverer.idle()
    return started
  }

  it('reach the mail server once, with a Message-ID of their own', async () => {
    const by = await connect()
    assert.is(await write(payoutPaid()), 'queued')
    assert.is(await deliver(by), 1)
    assert.is(await deliver(by), 0)
    const [mail] = server?.received ?? []
    const { id, state, attempts, finished_at } = await row()
    assert.equal([state, attempts, finished_at], ['sent', 1, bed.clock.now()])
    assert.equal([mail?.to, mail?.from], [[`${userId}@example.com`], 'no-reply@localhost'])
    const headers = source()
      .replace(/\r?\n[ \t]+/g, ' ')
      .split('\r\n')
    const oneClick = unsubscribeUrl(bed.platform, userId, 'payout.paid')
    for (const expected of [
      `Message-ID: <${id}@localhost>`,
      'From: Affiliate marketplace <no-reply@localhost>',
      'Subject: Payout of Rs 1,250.00 paid',
      `To: Ayesha Khan <${userId}@example.com>`,
      `List-Unsubscribe: <${oneClick}>, <mailto:no-reply@localhost?subject=unsubscribe%20payout.paid>`,
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
      'Auto-Submitted: auto-generated',
    ])
      assert.ok(headers.includes(expected), `${expected} is not in ${headers.join('\n')}`)
  })

  it('about the account itself cannot be turned off', async () => {
    const by = await connect()
    await write({ userId, kind: 'account_suspended', facts: { at: 1 } })
    await deliver(by)
    assert.not.match(source(), /unsubscribe/i)
  })

  it('that the server refuses end with its reply, which quotes addresses, in their row; the log has its codes', async () => {
    const by = await connect({
      onRcptTo({ address }, _session, done) {
        done(smtpError(550, `5.1.1 <${address}> unknown here`))
      },
    })
    await write(payoutPaid())
    const lines: object[] = []
    const log = { ...bed.platform.log, warn: (facts: object) => lines.push(facts) } as unknown as Logger
    assert.is(await deliver(by, { ...bed.platform, log }), 1)
    const { id, state, finished_at, last_error } = await row()
    assert.equal([state, finished_at], ['failed', bed.clock.now()])
    assert.match(last_error ?? '', `550 5.1.1 <${userId}@example.com> unknown here`)
    const facts = { mail: id, kind: 'payout.paid', accountId: userId, attempt: 1 }
    assert.equal(lines, [{ ...facts, code: 'EENVELOPE 550 5.1.1' }])
    assert.is(await mailDeliverer(bed.platform, by).nextDueAt(), null)
  })

  it('are written once for one event, and not at all with SMTP_URL=off', async () => {
    const { platform } = bed
    const off = { ...platform, config: { ...platform.config, SMTP_URL: 'off' as const } }
    assert.is(await write(payoutPaid(), off), 'off')
    assert.equal(await rows(), [])
    assert.is(await write(payoutPaid('payout 1')), 'queued')
    assert.is(await write(payoutPaid('payout 1')), 'known')
    assert.is(await write(payoutPaid('payout 2')), 'queued')
    assert.is((await rows()).length, 2)
  })

  it('to one address are limited by day and kind, so that many of one keep no other back', async () => {
    for (let n = 0; n < 50; n += 1) assert.is(await write(payoutPaid()), 'queued')
    assert.is(await write(payoutPaid()), 'limited')
    const overdue = { amount_due: '1.00', closed_at: bed.clock.now(), payment_url: null }
    assert.is(await write({ userId, kind: 'billing_cycle.overdue', facts: overdue }), 'queued')
    const at = bed.clock.now()
    const facts = { at, network: '192.0.2.0/24', program: null }
    const loggedIn: NewMail = { userId, kind: 'new_login', facts }
    for (let n = 0; n < 20; n += 1) assert.is(await write(loggedIn), 'queued')
    assert.is(await write(loggedIn), 'limited')
    assert.is(await write({ userId, kind: 'password_changed', facts: { at, by: 'owner' } }), 'queued')
    bed.clock.pass(DAY + 1)
    assert.is(await write(payoutPaid()), 'queued')
  })

  it('name their recipient without characters that change the direction', async () => {
    const by = await connect()
    await changeUser(bed.platform, userId, { display_name: 'Sana\u202Emoc.live' })
    await write(payoutPaid())
    await deliver(by)
    assert.match(source(), /^To: "?Sana moc\.live"? </m)
  })

  it('to an unverified address repeat nothing that the account chose', async () => {
    const by = await connect()
    const disabled = { at: bed.clock.now(), url: 'https://evil.example/you-won', reason: 'gone' }
    const mail: NewMail = { userId, kind: 'webhook_endpoint_disabled', facts: disabled }
    await write(mail)
    await deliver(by)
    await changeUser(bed.platform, userId, { email_verified_at: null, display_name: 'You won' })
    await write(mail)
    await deliver(by)
    const [verified = '', unverified = ''] = (server?.received ?? []).map(({ source }) => source)
    assert.match(verified, 'https://evil.example/you-won')
    assert.not.match(unverified, /evil|won/i)
  })

  it('that are greylisted come again, and are accepted then', async () => {
    let times = 0
    const by = await connect({
      onRcptTo(_address, _session, done) {
        times += 1
        done(times < 3 ? smtpError(451, 'greylisted, come back later') : null)
      },
    })
    await write(payoutPaid())
    for (let attempt = 1; attempt < 3; attempt += 1) {
      assert.is(await deliver(by), 1)
      const { state, attempts, last_error, next_try_at } = await row()
      assert.equal([state, attempts], ['queued', attempt])
      assert.match(last_error ?? '', /451 greylisted/)
      assert.ok(next_try_at > bed.clock.now() && next_try_at <= bed.clock.now() + 4 * HOUR)
      bed.clock.pass(4 * HOUR)
    }
    await deliver(by)
    assert.equal([(await row()).state, server?.received.length], ['sent', 1])
  })

  it('fail when they could not be sent for two days', async () => {
    const retry = { kind: 'retry' as const, detail: '421 busy', code: '421' }
    const busy = { send: async () => retry, close() {} }
    await write(payoutPaid())
    const written = bed.clock.now()
    while ((await row()).state === 'queued') {
      await deliver(busy)
      bed.clock.pass(HOUR)
    }
    const { last_error, finished_at } = await row()
    assert.match(last_error ?? '', /421 busy/)
    const after = (finished_at ?? 0) - written
    assert.ok(after > 2 * DAY - 5 * HOUR && after <= 2 * DAY + HOUR, String(after))
  })

  it('are retried after a refused log-in or sender, a lost connection and an unreachable server', async () => {
    const refusesLogIn: SMTPServerOptions = {
      authOptional: false,
      onAuth: (_auth, _session, done) => done(smtpError(535, 'wrong password')),
    }
    const refusesSender: SMTPServerOptions = {
      onMailFrom: (_address, _session, done) => done(smtpError(553, 'sender not allowed')),
    }
    const cases: [string, SMTPServerOptions, Partial<MailServer>, RegExp][] = [
      ['log-in', refusesLogIn, { user: 'u', password: 'p' }, /535 wrong password/],
      ['sender', refusesSender, {}, /553 sender not allowed/],
      ['lost', { onRcptTo: () => server?.drop() }, {}, /closed|reset/i],
      ['unreachable', {}, { port: 1 }, /ECONNREFUSED/],
      ['no TLS', { hideSTARTTLS: true, disabledCommands: ['STARTTLS'] }, { requireTls: true }, /TLS/i],
    ]
    for (const [name, options, change, reason] of cases) {
      await bed.platform.database.transaction((tx) => tx.deleteFrom('mails').execute())
      const by = await connect(options, change)
      await write(payoutPaid())
      assert.is(await deliver(by), 1, name)
      const { state, last_error } = await row()
      assert.is(state, 'queued', name)
      assert.match(last_error ?? '', reason, name)
      by.close()
      await server?.close()
    }
  })

  it('go encrypted, and with the password, where the server offers it', async () => {
    const asksPassword: SMTPServerOptions = {
      authOptional: false,
      onAuth: ({ username, password }, _session, done) =>
        done(password === 'p@ss' ? null : smtpError(535, 'wrong password'), { user: username ?? '' }),
    }
    const by = await connect(asksPassword, { user: 'mailer', password: 'p@ss', requireTls: true })
    await write(payoutPaid())
    await deliver(by)
    assert.equal(pluckAll(server?.received, 'secure', 'user'), [[true, 'mailer']])
  })

  it('under way at a slow server are left for the next worker at a stop, and repeated recognizably', async () => {
    const asked = Promise.withResolvers<void>()
    let accept: () => void = () => {}
    const by = await connect({
      onRcptTo(_address, _session, done) {
        accept = () => done()
        asked.resolve()
      },
    })
    await write(payoutPaid())
    const deliverer = mailDeliverer(bed.platform, by)
    await deliverer.start()
    await asked.promise
    // As long as an attempt can take.
    bed.clock.pass(90_000)
    assert.is(await mailDeliverer(bed.platform, by).start(), 0, 'claimed by another worker')
    await deliverer.stop()
    const { state, attempts, lease_token } = await row()
    assert.equal([state, attempts, lease_token], ['queued', 0, null])
    accept()
    const next = await connect()
    assert.is(await deliver(next), 1)
    assert.match(source(), new RegExp(`^Message-ID: <${(await row()).id}@`, 'm'))
  })

  it('keep the token of their link encrypted, and only until they are sent', async () => {
    const by = await connect()
    const token = { text: 'T0KEN'.repeat(8), expiresAt: bed.clock.now() + HOUR }
    await write({ userId, kind: 'password_reset', facts: {}, token })
    const queued = await row()
    assert.not.match(JSON.stringify(queued), /T0KEN/)
    assert.match(queued.token_encrypted ?? '', /^v2\./)
    assert.match((await showMail(bed.platform, queued.id)).text, /#token=T0KEN/)
    const mailing = readConfig({ SMTP_URL: 'smtp://a', MAIL_FROM: 'a@b' })
    const live = { ...bed.platform, config: { ...bed.platform.config, ...mailing } }
    assert.match((await showMail(live, queued.id)).text, /#token=HIDDEN/)
    await deliver(by)
    assert.is((await row()).token_encrypted, null)
    assert.match(server?.received[0]?.source.replaceAll('=\r\n', '') ?? '', /#token=3?D?T0KENT0KEN/)
    assert.match((await showMail(bed.platform, queued.id)).text, /#token=HIDDEN/)
  })

  it('with a link that has expired, or whose token was moved here, are not sent', async () => {
    const by = await connect()
    const token = { text: 'T0KEN'.repeat(8), expiresAt: bed.clock.now() + HOUR }
    await write({ userId, kind: 'password_reset', facts: {}, token })
    await write({ userId, kind: 'verify_email', facts: {}, token })
    const token_encrypted = (await row()).token_encrypted
    await bed.platform.database.transaction((tx) =>
      tx.updateTable('mails').set({ token_encrypted }).where('kind', '=', 'verify_email').execute(),
    )
    bed.clock.pass(1000)
    await deliver(by)
    assert.equal(pluck(await rows(), 'state'), ['sent', 'failed'])
    assert.match((await rows())[1]?.last_error ?? '', /changed or moved/)

    await write({ userId, kind: 'password_reset', facts: {}, token })
    bed.clock.pass(HOUR)
    await deliver(by)
    const late = (await rows())[2]
    assert.equal([late?.state, late?.last_error, late?.token_encrypted], ['failed', 'not sent in time', null])
    assert.is(server?.received.length, 1)
    assert.is(await outcomeOf(retryMail(bed.platform, late?.id ?? '')), 'conflict')
  })

  it("that failed are sent by an operator's retry", async () => {
    let isOpen = false
    const by = await connect({
      onRcptTo: (_address, _session, done) => done(isOpen ? null : smtpError(552, 'mailbox full')),
    })
    await write(payoutPaid())
    await deliver(by)
    isOpen = true
    await retryMail(bed.platform, (await row()).id)
    await deliver(by)
    assert.is((await row()).state, 'sent')
    assert.is(await outcomeOf(retryMail(bed.platform, (await row()).id)), 'conflict')
  })

  it('are removed 90 days after they were finished', async () => {
    const by = await connect()
    await write(payoutPaid())
    await deliver(by)
    bed.clock.pass(89 * DAY)
    await removeOldMails(bed.platform)
    assert.is((await rows()).length, 1)
    bed.clock.pass(2 * DAY)
    await removeOldMails(bed.platform)
    assert.equal(await rows(), [])
  })

  it('become files that only this user may read without SMTP_URL', async () => {
    const config = { ...bed.platform.config, DATA_DIR: bed.testDatabase.folder }
    transport = await openMailTransport(config, bed.platform.log)
    await write(payoutPaid())
    await deliver(transport)
    const folder = join(bed.testDatabase.folder, 'mail')
    const [file = ''] = readdirSync(folder)
    assert.match(file, /^202\d-.*-payout\.paid-.*\.eml$/)
    assert.is(statSync(join(folder, file)).mode & 0o777, 0o600)
    assert.match(readFileSync(join(folder, file), 'utf8'), /^Subject: Payout of Rs 1,250.00 paid\r$/m)
    assert.is((await row()).state, 'sent')
  })

  it.run()
}
