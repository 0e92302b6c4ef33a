import { readdirSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { MailKind } from '../notifications/channels/mail/mail-texts.ts'
import { showMail } from '../notifications/channels/mail/operator-mails.service.ts'
import { hasChromium, launchChromium } from '../test/testkit/browsers.ts'
import { eventually, GIVE_UP_MS } from '../test/testkit/eventually.ts'
import { PLAYS_ALL } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { call, openServiceBed, type ServiceBed } from '../test/testkit/service-bed.ts'

const it = suite('the pages that mailed links lead to')
let bed: ServiceBed
it.before(async () => {
  const names = { MARKETPLACE_NAME: 'Chenab <Partners>', APP_URL: 'https://app.chenab.pk' }
  bed = await openServiceBed('sqlite', { PUBLIC_BASE_URL: '', ...names })
})
it.after(() => bed.close())

for (const [path, title] of [
  ['/account/verify-email', 'Verify your e-mail address'],
  ['/account/reset-password', 'Choose a new password'],
] as const) {
  it(`${path} loads its own files only and is not kept`, async () => {
    const { status, headers, body } = await call(bed.url, 'GET', path)
    assert.is(status, 200)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self'/)
    assert.equal([headers.get('cache-control'), headers.get('referrer-policy')], ['no-store', 'no-referrer'])
    assert.match(body, `<h1>${title}</h1>`)
    assert.not.match(body, /<script>|style=|(?:src|<link .*href)="(?:https?:|\/)/)
  })
}

it('speak English or Urdu, as the address or the browser says, and lead to the app', async () => {
  const page = async (path: string, language?: string) =>
    (await call(bed.url, 'GET', path, { headers: language ? { 'accept-language': language } : {} }))
      .body as string
  for (const language of ['ur', 'ur-PK,en;q=0.8', 'en;q=0.3, ur;q=0.9', 'de, ur;q=0.2']) {
    const text = await page('/account/verify-email', language)
    assert.match(text, '<html lang="ur" dir="rtl">', language)
    assert.match(text, '<a href="?lang=en" lang="en" hreflang="en">English</a>')
    assert.match(text, '<bdi>Chenab &#60;Partners&#62;</bdi> پر جائیں')
  }
  for (const language of [undefined, '*', 'en-GB, ur;q=0.5', 'de', ';q=,,;'])
    assert.match(await page('/account/verify-email', language), '<html lang="en" dir="ltr">', language)
  const english = await page('/account/reset-password?lang=en&x="><b>', 'ur')
  assert.match(english, '<html lang="en" dir="ltr">')
  assert.match(english, '<a href="?lang=ur&#38;x=%22%3E%3Cb%3E" lang="ur" hreflang="ur">اردو</a>')
  assert.match(english, '<a href="https://app.chenab.pk">Go to <bdi>Chenab &#60;Partners&#62;</bdi></a>')
})

const proven = PLAYS_ALL ? it : () => undefined
const inBrowser = hasChromium ? proven : it.skip
inBrowser('work in a browser: the address is verified, the password reset, a used link says so', async () => {
  const email = 'sana@example.pk'
  const registration = { email, password: 'a long passphrase', role: 'creator', display_name: 'Sana' }
  const { body } = await call(bed.url, 'POST', '/auth/register', { body: registration })
  const { platform } = bed.service.app
  const newest = async (kind: MailKind) => (await rowsOf(platform, 'mails', { kind })).at(-1)
  /** The link in the file that the worker writes for a mail. */
  const linkIn = async (kind: MailKind) => {
    const mail = await eventually(async () => {
      const row = await newest(kind)
      return row?.state === 'sent' && row
    })
    assert.match((await showMail(platform, mail.id)).text, '#token=HIDDEN')
    const folder = `${bed.testDatabase.folder}/mail`
    const file = readdirSync(folder).find((name) => name.includes(mail.id)) ?? ''
    const text = readFileSync(`${folder}/${file}`, 'utf8').replaceAll('=\r\n', '').replaceAll('=3D', '=')
    return /^(http\S+#token=[\w-]{43})\r$/m.exec(text)?.[1] ?? ''
  }
  const browser = await launchChromium()
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(GIVE_UP_MS)
    const verification = await linkIn('verify_email')
    await page.goto(verification)
    assert.not.match(page.url(), 'token')
    await page.getByRole('button').click()
    await page.getByText('Your e-mail address is verified.').waitFor()
    const me = await call(bed.url, 'GET', '/me', { token: body.token })
    assert.is(typeof me.body.email_verified_at, 'string')
    await page.goto('about:blank')
    await page.goto(verification)
    await page.getByRole('button').click()
    await page.getByText('This link was used already or has expired.').waitFor()
    await page.getByText('اردو').click()
    await page.locator('html[dir=rtl]').waitFor()
    assert.not.match(page.url(), 'token')
    await page.getByText('English').click()
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill('a wrong passphrase')
    await page.getByRole('button', { name: 'Send a new one' }).click()
    await page.getByText('The e-mail address, the password or the code is wrong.').waitFor()
    await page.getByLabel('Password').fill('a long passphrase')
    await page.getByRole('button', { name: 'Send a new one' }).click()
    await page.getByText('A new link is on its way, unless').waitFor()

    await call(bed.url, 'POST', '/auth/password-reset', { body: { email } })
    await page.goto(await linkIn('password_reset'))
    const field = page.getByLabel('New password')
    await field.fill('sana@example.pk')
    await page.getByRole('button').click()
    await page.getByText('This password must not be your e-mail').waitFor()
    await field.fill('another passphrase')
    await page.getByRole('button').click()
    await page.getByText('Your password is changed').waitFor()
    const before = await newest('password_reset')
    await page.goto(`${bed.url}/account/reset-password#token=x`)
    await page.getByLabel('New password').fill('another passphrase')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByLabel('E-mail address').fill(email)
    await page.getByRole('button', { name: 'Send a new one' }).click()
    await page.getByText('a new link is on its way').waitFor()
    await eventually(async () => (await newest('password_reset'))?.id !== before?.id)
  } finally {
    await browser.close()
  }
  const login = { email, password: 'another passphrase' }
  assert.is((await call(bed.url, 'POST', '/auth/login', { body: login })).status, 200)
  assert.is((await call(bed.url, 'GET', '/me', { token: body.token })).status, 401)
})

it.run()
