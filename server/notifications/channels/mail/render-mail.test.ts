// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { MAIL_EVENTS } from '../../../../shared/events.ts'
import { anyCharacter, fc } from '../../../test/testkit/property.ts'
import { type MailContent, mailText } from './mail-texts.ts'
import { renderMail } from './render-mail.ts'

const SETTING = {
  publicBaseUrl: 'https://offers.pk',
  timeZone: 'Asia/Karachi',
  token: 'T0KEN',
  showsOwnText: true,
}
const AT = Date.parse('2026-11-20T17:30:00Z')
const HOME = 'https://offers.pk/app'
const FRAME = { marketplace: 'Offers <PK>', home: HOME, name: 'Ayesha', footer: 'Footer.' }

const OFFER = { offer: 'Leather shoes' }
const LINK = { ...OFFER, link: 'https://offers.pk/go/abc', reason: null }
const API_KEY = { name: 'Order desk', scope: 'write', last4: 'w8Zk', expires_at: null } as const
const LOG_IN = { at: AT, network: '203.0.113.0/24', program: 'Chrome on Windows' }
const CYCLE = { amount_due: '2750.00', period_start: AT, period_end: AT, payment_url: null }
const TRANSFER = { number: 'INVABCDEFGHIJKL', instructions: 'Habib Bank\nPK36SCBL0000001123456702' }
const FACTOR_CHANGES = ['on', 'off', 'reset', 'code_used', 'codes_renewed'] as const

/** One of each kind. */
const MAILS: MailContent[] = [
  { kind: 'verify_email', facts: {} },
  { kind: 'password_reset', facts: {} },
  { kind: 'password_changed', facts: { at: AT, by: 'reset' } },
  { kind: 'payout_destination_changed', facts: { at: AT, iban_last4: '6702', effective_at: AT } },
  { kind: 'billing_account_changed', facts: { at: AT, last4: '4567' } },
  { kind: 'new_login', facts: LOG_IN },
  ...FACTOR_CHANGES.map(
    (change): MailContent => ({ kind: 'second_factor_changed', facts: { at: AT, change } }),
  ),
  { kind: 'api_key_created', facts: { at: AT, ...API_KEY } },
  { kind: 'account_suspended', facts: { at: AT } },
  { kind: 'webhook_endpoint_disabled', facts: { at: AT, url: 'https://a.pk/hook', reason: 'gone' } },
  { kind: 'application.created', facts: { ...OFFER, creator: 'Sana' } },
  { kind: 'application.decided', facts: { ...LINK, decision: 'approved' } },
  { kind: 'link.ended', facts: LINK },
  {
    kind: 'credit_request.decided',
    facts: { amount: '1250.00', status: 'granted', granted_amount: '625.00' },
  },
  { kind: 'sale.accepted', facts: { commission: '125.00', net_amount: '1250.00', order_name: '#1001' } },
  { kind: 'billing_cycle.closed', facts: { ...CYCLE, payment_url: 'https://pay.pk/i/1?a=1&b=2' } },
  { kind: 'billing_cycle.overdue', facts: { amount_due: '2750.00', closed_at: AT, payment_url: null } },
  { kind: 'billing_cycle.closed', facts: { ...CYCLE, transfer: TRANSFER } },
  {
    kind: 'store.rejecting',
    facts: { shop_domain: 'kurta.myshopify.com', at: AT, reason: 'wrong_signature' },
  },
  { kind: 'store.silent', facts: { shop_domain: 'kurta.myshopify.com', last_event_at: AT } },
  { kind: 'payout.paid', facts: { amount: '2500.00' } },
  { kind: 'payout.failed', facts: { amount: '2500.00', reason: 'account closed' } },
]

const render = (mail: MailContent, name: string | null = 'Ayesha') =>
  renderMail(mailText(mail, SETTING), { ...FRAME, name })

test('every kind has a subject, text and HTML, and events are among them', () => {
  const kinds = MAILS.map(({ kind }) => kind as string)
  for (const event of [...MAIL_EVENTS.merchant, ...MAIL_EVENTS.creator])
    assert.ok(kinds.includes(event), event)
  for (const mail of MAILS) {
    const { subject, text, html } = render(mail)
    assert.ok(subject.length > 5 && subject.length < 80, mail.kind)
    assert.match(text, /^Hello Ayesha,\n\n/, mail.kind)
    assert.match(text, /\n-- \nOffers <PK>\nhttps:\/\/offers\.pk\/app\nFooter\.\n$/, mail.kind)
    assert.match(html, /^<!doctype html>/, mail.kind)
    assert.match(html, `<a href="${HOME}" style="color:#14733f">Offers &lt;PK&gt;</a></p>`, mail.kind)
    for (const part of [subject, text, html])
      assert.not.match(part, /undefined|null|NaN|\[object|Invalid/, mail.kind)
  }
})

test('links lead to PUBLIC_BASE_URL with the token in the fragment, and payment links are whole', () => {
  const [verify, reset] = MAILS.map((mail) => render(mail))
  assert.match(verify?.text ?? '', 'https://offers.pk/account/verify-email#token=T0KEN\n')
  assert.match(reset?.html ?? '', 'href="https://offers.pk/account/reset-password#token=T0KEN"')
  const closed = render(MAILS.find(({ kind }) => kind === 'billing_cycle.closed') as MailContent)
  assert.match(closed.text, 'https://pay.pk/i/1?a=1&b=2\n')
  assert.match(closed.html, 'href="https://pay.pk/i/1?a=1&amp;b=2"')
  assert.match(closed.subject, 'Rs 2,750.00')
})

test('a decision is mailed with the reason that the merchant gave', () => {
  const rejected = (reason: string | null) =>
    render({ kind: 'application.decided', facts: { ...OFFER, decision: 'rejected', link: null, reason } })
  const { text, html } = rejected('Only <b>fashion</b>\nchannels')
  assert.match(text, 'Reason: Only <b>fashion</b> channels\n')
  assert.match(html, '>Only &lt;b&gt;fashion&lt;/b&gt; channels</td>')
  assert.not.match(rejected(null).text, 'Reason')
})

test('prose in plain text has at most 76 columns and keeps its words', () => {
  const footer = 'You receive this e-mail because of an event. '.repeat(4).trim()
  for (const mail of MAILS) {
    const parts = mailText(mail, SETTING)
    const { text } = renderMail(parts, { ...FRAME, home: null, footer })
    for (const line of text.split('\n')) assert.ok(line.length <= 76 || /https?:/.test(line), line)
    const words = text.replace(/\s+/g, ' ')
    for (const prose of [...parts.paragraphs, footer]) assert.match(words, prose)
  }
})

test('times are those of the billing time zone', () => {
  const mail: MailContent = { kind: 'account_suspended', facts: { at: AT } }
  assert.match(render(mail).text, 'Time: 20 November 2026, 22:30 PKT\n')
  const elsewhere = mailText(mail, { ...SETTING, timeZone: 'UTC' })
  assert.equal(elsewhere.details, [['Time', '20 November 2026, 17:30 UTC']])
})

test('a new log-in says when, with what and from where, and what to do', () => {
  const textOf = (facts: { network?: string; program?: null } = {}) =>
    render({ kind: 'new_login', facts: { ...LOG_IN, ...facts } }).text
  const where = 'Device: Chrome on Windows\nNetwork: 203.0.113.0/24\n'
  assert.match(textOf(), `Time: 20 November 2026, 22:30 PKT\n${where}`)
  assert.match(textOf(), 'change your password now')
  for (const network of ['203.0.113.0/24', 'unknown'])
    assert.not.match(textOf({ network, program: null }), 'Device')
})

test('Urdu is isolated, so that the words around it keep their direction', () => {
  const { subject, text, html } = render(
    { kind: 'application.created', facts: { offer: 'چمڑے کی چپل', creator: 'ثنا خان' } },
    'احمد',
  )
  assert.is(subject, 'New application for چمڑے کی چپل')
  assert.match(text, 'Hello \u2068احمد\u2069,')
  assert.match(text, 'Creator: \u2068ثنا خان\u2069\n')
  assert.match(html, 'Hello <bdi>احمد</bdi>,')
  assert.match(html, /<td dir="auto"[^>]*>ثنا خان<\/td>/)
  const beyondFirstPlane = render({ kind: 'account_suspended', facts: { at: AT } }, '𞤀𞤣𞤤')
  assert.match(beyondFirstPlane.text, 'Hello \u2068𞤀𞤣𞤤\u2069,')
})

test('a name cannot bring line breaks, markup or a direction of its own', () => {
  const creator = 'A\r\nBcc: x@y.pk\u2028<img src=x onerror="a(\'b\')">&\u202Egnp\u2066'
  const { subject, text, html } = render(
    { kind: 'application.created', facts: { offer: creator, creator } },
    creator,
  )
  assert.is(subject, 'New application for A Bcc: x@y.pk <img src=x onerror="a(\'b\')">& gnp')
  assert.match(text, 'Creator: A Bcc: x@y.pk <img')
  assert.not.match(html, '<img')
  assert.match(html, '&lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp; gnp')
  for (const part of [subject, text, html]) assert.not.match(part, /[\r\u2028\u202A-\u202E\u2066]/)
})

test('long subjects are cut between characters', () => {
  const facts = { offer: '😀'.repeat(200), creator: 'S' }
  const { subject } = render({ kind: 'application.created', facts })
  assert.is([...subject].length, 150)
  assert.match(subject, /😀…$/)
  assert.ok(subject.isWellFormed())
})

test('property: no text of a user changes the markup or the headers', async () => {
  const words = fc.string({ unit: anyCharacter, maxLength: 120 })
  const { createTransport } = await import('nodemailer')
  const composer = createTransport({ streamTransport: true, buffer: true })
  await fc.assert(
    fc.asyncProperty(words, words, words, async (offer, creator, name) => {
      const mail = render({ kind: 'application.created', facts: { offer, creator } }, name)
      const tags = (html: string) => html.match(/<[^>]*>/g)?.join('')
      const plain = render({ kind: 'application.created', facts: { offer: 'o', creator: 'c' } }, 'n')
      assert.is(tags(mail.html), tags(plain.html))
      assert.not.match(mail.subject, /[\r\n]/)
      const to = { name: name.replace(/\p{Cc}/gu, ' '), address: 'a@b.pk' }
      const { message } = await composer.sendMail({ from: 'x@y.pk', to, subject: mail.subject, text: 'x' })
      const [head = ''] = (message as Buffer).toString('latin1').split(/\r?\n\r?\n/)
      const names = head.split(/\r?\n(?![ \t])/).map((line) => line.split(':')[0])
      const expected = 'Content-Transfer-Encoding Content-Type Date From MIME-Version Message-ID Subject To'
      assert.is(names.sort().join(' '), expected)
      assert.match(head, /^(?:[\t\r\n]|[ -~])*$/)
    }),
    { numRuns: 200 },
  )
})

test.run()
