// proof only
// database: none
import { globSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { DOWNLOADS } from '../testkit/browsers.ts'
import { eventually } from '../testkit/eventually.ts'
import { call } from '../testkit/service-bed.ts'
import { HOUR } from '../testkit/testbed.ts'
import { errorsOf, fill, logIn, open, openTab, portalSuite, ROLES, settled, type Viewer } from './browsing.ts'

const it = portalSuite('the portal in adversity')

/** Types into a filter: in Firefox, a value that a script sets fires no `change` event. */
async function filterBy(page: Page, name: string, text: string): Promise<void> {
  await page.press(`[name=${name}]`, 'ControlOrMeta+a')
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

const heading = (page: Page) => page.textContent('main h1')

it('shows names with markup, with marks and without end as they are', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser, { viewport: { width: 390, height: 800 } })
  await logIn(page, bed, 'creator', '/account')
  const names = ['<img src=x onerror=alert(1)><b>Sana</b>', 'ثنا‏ مرزا & "Sana"', 'W'.repeat(100)]
  for (const name of names) {
    await page.fill('[name=display_name]', name)
    await page.click('form:has([name=display_name]) [type=submit]')
    assert.ok(await eventually(async () => (await page.textContent('.name')) === name))
    assert.is(await page.locator('main img, main b').count(), 0)
    assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390)
  }
  await page.fill('[name=display_name]', 'W'.repeat(500))
  await page.click('form:has([name=display_name]) [type=submit]')
  await page.waitForSelector('form:has([name=display_name]) .complaint')
  await page.fill('[name=display_name]', 'a\u202eb')
  await page.click('form:has([name=display_name]) [type=submit]')
  await page.waitForSelector('form:has([name=display_name]) .complaint:has-text("direction")')
  // Refused calls are errors in the console.
  assert.ok(
    errors.every((text) => text.includes('status of 400')),
    String(errors),
  )
  await close()
})

it('would notice what goes wrong in a page', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, '/offers')
  const faults = {
    'console.error("logged")': /logged/,
    'void setTimeout(() => { throw new Error("thrown") })': /thrown/,
    'void Promise.reject(new Error("rejected"))': /rejected/,
    'fetch("/me").then(() => {})': /status of 401/,
    'document.body.append(Object.assign(new Image(), { src: "http://localhost/" }))':
      /Content.Security.Policy/,
    'open("http://localhost/", "_self") && undefined': /asks http/,
  }
  for (const [fault, expected] of Object.entries(faults)) {
    await page.evaluate(fault)
    await eventually(() => errors.some((text) => expected.test(text)))
  }
  await close()
})

const NO_STORAGE = `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError') } })`

it('works where the browser refuses storage', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await page.addInitScript(NO_STORAGE)
  await logIn(page, bed, 'merchant', '/sales')
  await page.waitForSelector('tbody tr')
  await page.click('.choices button')
  await page.waitForSelector('html[dir=rtl]')
  await page.selectOption('.choices select', 'dark')
  await page.reload()
  await page.waitForSelector('tbody tr')
  // The page of the log-in asked whether there is a session.
  assert.is(errors.length, 1)
  assert.match(errors[0] ?? '', '401')
  await close()
})

it('asks nothing of a session where the browser refuses storage and cookies', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await page.addInitScript(NO_STORAGE)
  await page.addInitScript(`Object.defineProperty(document, 'cookie', { get: () => '', set() {} })`)
  await open(page, bed.url, '/offers')
  await page.waitForSelector('tbody tr')
  await open(page, bed.url, '/sales')
  assert.is(await heading(page), 'Log in first')
  assert.equal(errors, [])
  await close()
})

it('says that the browser refuses cookies', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  const body = { email: bed.seeded.accounts[0]?.email ?? '', password: bed.seeded.password }
  const { body: data } = await call(bed.url, 'POST', '/auth/login', { body })
  // Without its cookie.
  await page.route(/trpc\/auth\.login/, (route) => route.fulfill({ json: [{ result: { data } }] }))
  await page.goto(`${bed.url}/app/login`)
  await fill(page, body)
  await page.waitForSelector('.notice.bad:has-text("refuses cookies")')
  assert.is(await heading(page), 'Log in')
  await close()
})

it('says that a screen has failed, and shows the others', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await logIn(page, bed, 'merchant', '/offers')
  const broken = [{ result: { data: { items: [{ id: 'without a status' }], next_cursor: null } } }]
  await page.route(/trpc\/sales\.list/, (route) => route.fulfill({ json: broken }))
  await page.click('nav a[href="/app/sales"]')
  await page.waitForSelector('h1:has-text("Something went wrong")')
  assert.is(errors.length, 1)
  await page.click('nav a[href="/app/offers"]')
  await page.waitForSelector('h1:has-text("Offers")')
  await page.click('nav a[href="/app/sales"]')
  await page.waitForSelector('h1:has-text("Something went wrong")')
  await page.unroute(/trpc\/sales\.list/)
  await page.click('main a:has-text("Load it again")')
  await page.waitForSelector('tbody tr')
  await close()
})

it('says why a file cannot be downloaded', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  await logIn(page, bed, 'creator', '/exports')
  await page.click('form [type=submit]')
  const button = page.locator('main tbody button.main:has-text("Download")')
  // Firefox reports no download of a file that the page itself has made.
  const isReported = browser.browserType().name() === 'chromium'
  const file = isReported ? page.waitForEvent('download') : null
  await button.click()
  if (file) assert.match((await file).suggestedFilename(), /\.csv$/)
  const files = () => globSync(`${DOWNLOADS}/*`).map((path) => readFileSync(path, 'utf8'))
  await eventually(() => files().some((text) => text.includes('order_name,')))
  const other = await openTab(browser)
  await logIn(other.page, bed, 'creator', '/exports')
  await other.page.waitForSelector('main tbody button:has-text("Download")')
  await other.close()
  rmSync(join(bed.service.app.platform.config.DATA_DIR ?? '', 'exports'), { recursive: true })
  await button.click()
  await page.waitForSelector('.notice.bad:has-text("The file was lost. Start the export again.")')
  await page.click('.choices button')
  await page.waitForSelector('.notice.bad:has-text("فائل")')
  assert.is(await page.textContent('.notice.bad [lang=en]'), 'The file was lost. Start the export again.')
  await page.click('.choices button')
  await bed.service.stop()
  await button.click()
  await page.waitForSelector('.notice.bad:has-text("The service does not answer.")')
  await bed.restart()
  await close()
})

it('tells refusals in Urdu, with their values, and in English below', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser, { locale: 'ur-PK' })
  await page.goto(`${bed.url}/app/login`)
  await fill(page, { email: 'missing@example.pk', password: 'a long passphrase' })
  await page.waitForSelector('.notice.bad:has-text("ای میل یا پاس ورڈ غلط ہے۔")')
  assert.is(await page.textContent('.notice.bad [lang=en]'), 'The e-mail or the password is wrong.')
  await page.click('main a[href="/app/register"]')
  await fill(page, { display_name: 'ثنا', email: 'sana@example.pk', password: 'short' })
  await page.waitForSelector('.complaint:has-text("کم از کم \u206810\u2069 حروف ہونے چاہییں۔")')
  assert.is(await page.textContent('.complaint [lang=en]'), 'must have at least 10 characters')
  await close()
})

it('looks at times for what no event tells', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await page.clock.install()
  await logIn(page, bed, 'creator', '/payouts')
  const asked = page.waitForRequest(/trpc\/[^?]*summaries\.get/)
  await page.clock.runFor(60_000)
  await asked
  assert.equal(errors, [])
  await close()
})

it('goes by the times of the service where the clock is two hours off', async ({ bed, browser }) => {
  const texts: string[] = []
  for (const off of [0, -2 * HOUR, 2 * HOUR]) {
    const { page, errors, close } = await openTab(browser)
    await page.clock.install({ time: Date.now() + off })
    await page.clock.resume()
    await logIn(page, bed, 'creator', '/sales')
    await page.waitForSelector('tbody tr')
    texts.push(String(await page.textContent('tbody')))
    assert.equal(errors, [])
    await close()
  }
  assert.is(new Set(texts).size, 1)
})

it('says what is wrong with an address, and leads on', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, '/flags')
  assert.is(await heading(page), 'Log in first')
  await open(page, bed.url, '/nowhere/%3Cb%3E')
  assert.is(await heading(page), 'Page not found')
  await logIn(page, bed, 'creator', '/flags')
  assert.is(await heading(page), 'Not for this account')
  await page.click('main a')
  await settled(page)
  assert.not.ok(page.url().endsWith('/flags'))
  for (const back of ['', 'elsewhere', '//evil.example', 'https://evil.example', 'javascript:alert(1)']) {
    await open(page, bed.url, `/login?back=${encodeURIComponent(back)}`)
    await page.waitForURL(({ pathname }) => pathname !== '/app/login')
    assert.match(page.url(), `${bed.url}/app/`)
  }
  assert.equal(errors, [])
  await open(page, bed.url, '/sales?acceptance_status=%3Cb%3E')
  await page.waitForSelector('.notice.bad')
  await close()
})

it('asks to log in again once the session has ended, and comes back', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  await logIn(page, bed, 'merchant', '/sales')
  await page.context().clearCookies()
  await page.click('nav a[href="/app/offers"]')
  await page.click('nav a[href="/app/sales"]')
  await page.waitForSelector('h1:has-text("Log in first")')
  await page.click('main a.button')
  const account = bed.seeded.accounts.find(({ role }) => role === 'merchant')
  await fill(page, { email: account?.email ?? '', password: bed.seeded.password })
  await page.waitForURL(`${bed.url}/app/sales`)
  await page.waitForSelector('tbody tr')
  await close()
})

it('says that an account is suspended', async ({ bed, browser }) => {
  const account = { email: 'later-suspended@example.pk', password: 'a long passphrase' }
  const body = { ...account, role: 'creator', display_name: 'Later suspended' }
  const { user } = (await call(bed.url, 'POST', '/auth/register', { body })).body
  const { page, close } = await openTab(browser)
  await page.goto(`${bed.url}/app/login?back=/sales`)
  await fill(page, account)
  await page.waitForSelector('h1:has-text("Sales")')
  const admin = {
    email: bed.seeded.accounts.find(({ role }) => role === 'admin')?.email,
    password: bed.seeded.password,
  }
  const { token } = (await call(bed.url, 'POST', '/auth/login', { body: admin })).body
  await call(bed.url, 'POST', `/admin/users/${user.id}/suspend`, { token, body: { reason: '<b>fraud</b>' } })
  // The open page hears of it.
  await page.waitForSelector('h1:has-text("Log in first")')
  await page.click('main a.button')
  await fill(page, account)
  await page.waitForSelector('.notice.bad:has-text("suspended")')
  await close()
})

it('says that the service is gone, and goes on by itself when it is back', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  await logIn(page, bed, 'merchant', '/sales')
  await page.waitForSelector('tbody tr')
  await bed.service.stop()
  await page.click('nav a[href="/app/offers"]')
  await page.waitForSelector('.bar')
  await bed.restart()
  await page.waitForSelector('.bar', { state: 'detached' })
  await page.waitForSelector('tbody tr')
  assert.is(await page.locator('.notice.bad').count(), 0)
  await close()
})

it('follows another tab that logs in, out, and in to another account', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, '/offers')
  const other = await page.context().newPage()
  const otherErrors = errorsOf(other)
  await logIn(other, bed, 'creator', '/sales')
  await page.waitForSelector('nav a[href="/app/sales"]')
  await page.click('.top-parts button:has-text("Log out")')
  await other.waitForSelector('h1:has-text("Log in first")')
  await logIn(page, bed, 'merchant', '/stores')
  await other.waitForSelector('nav a[href="/app/stores"]')
  await other.waitForSelector('tbody td[data-head="Creator"]')
  assert.equal([...errors, ...otherErrors], [])
  await close()
})

it('asks once more only after an answer that takes longer than the pause between two looks', async ({
  bed,
  browser,
}) => {
  const { page, errors, close } = await openTab(browser)
  await page.clock.install()
  await logIn(page, bed, 'merchant', '/offers')
  const held = Promise.withResolvers<void>()
  let asked = 0
  await page.route(/\/trpc\/[^?]*stores\.list/, async (route) => {
    asked += 1
    await held.promise
    await route.continue()
  })
  await page.click('nav a[href="/app/stores"]')
  assert.ok(await eventually(() => asked === 1))
  await page.clock.runFor(20_000)
  assert.is(asked, 1)
  held.resolve()
  await page.waitForSelector('main section')
  assert.equal(errors, [])
  await close()
})

it('shows what a detector found in words', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await logIn(page, bed, 'admin', '/flags')
  await page.waitForSelector('main code')
  assert.not.match(await page.innerText('main'), /[[{]"|_/)
  const id = page.locator('main code').first()
  assert.ok((await id.getAttribute('title'))?.endsWith((await id.innerText()).padStart(8, '?')))
  assert.equal(errors, [])
  await close()
})

it('shows admins what a suspension would do before they decide', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await logIn(page, bed, 'admin', '/users')
  await page.selectOption('[name=role]', 'creator')
  await page.selectOption('[name=state]', 'active')
  await filterBy(page, 'q', 'no such account')
  await page.waitForSelector('main .empty')
  await filterBy(page, 'q', '@')
  const row = page.locator('tbody tr').first()
  await row.locator('button.danger').click()
  await page.waitForSelector('dialog dd')
  assert.match(await page.innerText('dialog'), /Links that stop earning\s+\d/)
  assert.not.match(await page.innerText('dialog'), /_|\[object/)
  await page.fill('dialog [name=reason]', 'a test')
  await page.click('dialog [type=submit]')
  await row.locator('.status.bad').waitFor()
  await row.locator('button').click()
  await page.fill('dialog [name=reason]', 'a test')
  await page.click('dialog [type=submit]')
  await row.locator('.status.good').waitFor()
  assert.equal(errors, [])
  await close()
})

it('goes back and forth with its filters', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await logIn(page, bed, 'merchant', '/sales')
  await page.waitForSelector('tbody .status.bad')
  await page.selectOption('[name=acceptance_status]', 'accepted')
  await page.waitForSelector('tbody .status.bad', { state: 'detached' })
  await page.click('nav a[href="/app/offers"]')
  await page.waitForSelector('h1:has-text("Offers")')
  await page.goBack()
  await page.waitForSelector('h1:has-text("Sales")')
  assert.is(await page.inputValue('[name=acceptance_status]'), 'accepted')
  await page.waitForSelector('tbody tr')
  assert.is(await page.locator('tbody .status.bad').count(), 0)
  await page.goForward()
  await page.waitForSelector('h1:has-text("Offers")')
  await page.waitForSelector('tbody tr')
  await filterBy(page, 'paid_rate_min', '1')
  await page.waitForSelector('.empty:has-text("Nothing fits these filters.")')
  assert.equal(errors, [])
  await close()
})

it('paints its frame before any script has arrived', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route('**/assets/*', async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${bed.url}/app/offers`, { waitUntil: 'commit' })
  await page.waitForSelector('.skeleton')
  assert.is(await page.evaluate('getComputedStyle(document.querySelector(".top")).display'), 'flex')
  assert.ok(
    await eventually(() =>
      page.evaluate('performance.getEntriesByName("first-contentful-paint").length > 0'),
    ),
  )
  release()
  await page.waitForSelector('tbody tr')
  await close()
})

/** Markup, marks of direction, letters from right to left, and no place to break a line. */
const strange = (length: number) =>
  `<img src=x onerror=alert(1)><b>ثنا\u200f & "${'W'.repeat(length)}`.slice(0, length)

/** Firefox leaves these marks out of `innerText`. */
const withoutMarks = (text: string) => text.replaceAll('\u200f', '')

/** By role and path, what is shown there, and the buttons that open dialogs. */
const PLACES: [Viewer, string, texts: string[], dialogs?: string[]][] = [
  ['visitor', '/offers', [strange(100), strange(60)]],
  ['merchant', '/my-offers', [strange(100)]],
  ['merchant', '/applications', [strange(500), `reason ${strange(400)}`, 'C'.repeat(40)]],
  ['merchant', '/links', ['C'.repeat(40)], ['Coupon code', 'End']],
  ['merchant', '/stores', ['s'.repeat(63)], ['Replace the secret', 'Remove']],
  ['merchant', '/webhooks', ['p'.repeat(500)], ['Edit', 'Remove']],
  ['merchant', '/account', [strange(60)], ['New key']],
  ['creator', '/applications', [strange(500), `reason ${strange(400)}`]],
  ['creator', '/links', ['C'.repeat(40), strange(100)], ['Share']],
  ['admin', '/users', [strange(100)], ['Suspend']],
]

it('shows what others wrote, however long and strange, as text that scrolls nothing', async ({
  bed,
  browser,
}) => {
  const tokenOf = async (role: Viewer, nth = 0) => {
    const { email } = bed.seeded.accounts.filter((account) => account.role === role)[nth] ?? {}
    return (await call(bed.url, 'POST', '/auth/login', { body: { email, password: bed.seeded.password } }))
      .body.token
  }
  const tokens = [await tokenOf('merchant'), await tokenOf('creator'), await tokenOf('creator', 1)] as const
  const [merchant, ...creators] = tokens
  const send = async (method: string, path: string, token: string, body: object) => {
    const answer = await call(bed.url, method, path, { token, body })
    assert.ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  const offer = await send('POST', '/offers', merchant, {
    ...{ title: strange(100), description: strange(500), category: strange(60), niche: strange(60) },
    ...{ product_url: 'https://example.pk/', commission_rate: 5, attribution_window_days: 30 },
  })
  await send('PATCH', `/offers/${offer.id}/status`, merchant, { status: 'live' })
  const answers = [{ decision: 'approve', coupon_code: 'C'.repeat(40) }, { decision: 'reject' }]
  for (const [index, token] of creators.entries()) {
    const { id } = await send('POST', `/offers/${offer.id}/applications`, token, { message: strange(500) })
    await send('PATCH', `/applications/${id}`, merchant, {
      ...answers[index],
      reason: `reason ${strange(400)}`,
    })
  }
  await send('POST', '/stores', merchant, {
    ...{ shop_domain: `${'s'.repeat(63)}.myshopify.com`, webhook_secret: 'secret-of-the-strange-shop' },
  })
  await send('POST', '/webhook-endpoints', merchant, {
    url: `https://hooks.example.com/${'p'.repeat(500)}`,
    events: ['sale.accepted'],
  })
  for (const token of [merchant, creators[0]]) {
    await send('POST', '/auth/api-keys', token, { name: strange(60), scope: 'read' })
    await send('PATCH', '/me', token, { display_name: strange(100) })
  }
  for (const role of ROLES) {
    const { page, errors, close } = await openTab(browser, { viewport: { width: 390, height: 800 } })
    const fits = async (where: string) =>
      assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390, where)
    await logIn(page, bed, role, '/offers')
    for (const [, path, texts, dialogs = []] of PLACES.filter(([viewer]) => viewer === role)) {
      await open(page, bed.url, path)
      const shown = withoutMarks(await page.innerText('main'))
      for (const text of texts) assert.ok(shown.includes(withoutMarks(text)), `${role} ${path}: ${text}`)
      assert.is(await page.locator('main b, main img').count(), 0, path)
      await fits(`${role} ${path}`)
      for (const name of dialogs) {
        await page.getByRole('button', { name, exact: true }).first().click()
        const box = page.locator('dialog')
        assert.is(await box.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth), 0, name)
        await fits(`${role} ${path}, ${name}`)
        await box.locator('header button').click()
      }
    }
    if (role === 'creator') {
      await open(page, bed.url, `/offers/${offer.id}`)
      assert.ok(withoutMarks(await page.innerText('main')).includes(withoutMarks(strange(500))))
      await fits('an offer')
    }
    assert.equal(errors, [])
    await close()
  }
})

it.run()
