// proof only
// database: none
import type { Page, Route } from 'playwright-core'
import * as assert from 'uvu/assert'
import { eventually } from '../testkit/eventually.ts'
import { call } from '../testkit/service-bed.ts'
import { logIn, open, openTab, portalSuite, settled } from './browsing.ts'

const it = portalSuite('the portal and its network')

it('asks no other host for the picture of an offer, and links to it', async ({ bed, browser }) => {
  const merchant = bed.seeded.accounts.find(({ role }) => role === 'merchant')
  const body = { email: merchant?.email, password: bed.seeded.password }
  const { token, user } = (await call(bed.url, 'POST', '/auth/login', { body })).body
  const { items } = (await call(bed.url, 'GET', '/offers')).body
  const offer = items.find((one: typeof items) => one.merchant.id === user.id)
  const image_url = 'https://pictures.example.com/lawn.jpg'
  await call(bed.url, 'PATCH', `/offers/${offer.id}`, { token, body: { image_url } })
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, `/offers/${offer.id}`)
  await page.waitForSelector(`main a[href="${image_url}"][rel~=noreferrer]`)
  assert.is(await page.locator('main img').count(), 0)
  assert.equal(errors, [])
  // The policy refuses it too.
  await page.evaluate(`document.body.append(Object.assign(new Image(), { src: '${image_url}' }))`)
  assert.ok(await eventually(() => errors.some((text) => /Content.Security.Policy/.test(text))))
  await close()
})

it('leaves nothing in the console on the pages that mails lead to', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  for (const name of ['reset-password', 'verify-email']) {
    await page.goto(`${bed.url}/account/${name}`)
    await page.waitForSelector('main.task h1')
  }
  assert.equal(errors, [])
  await close()
})

it("asks for a visitor's catalogue once, before any script has arrived", async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  const calls: string[] = []
  page.on('request', (request) => request.url().includes('/trpc/') && calls.push(request.url()))
  const held = Promise.withResolvers<void>()
  await page.route('**/assets/*', async (route) => {
    await held.promise
    await route.continue()
  })
  await page.goto(`${bed.url}/app`, { waitUntil: 'commit' })
  assert.ok(await eventually(() => calls.length > 0))
  held.resolve()
  await page.waitForSelector('tbody tr')
  assert.is(calls.length, 1, String(calls))
  assert.equal(errors, [])
  await close()
})

/** Lets no call of the page reach the service until the answered function is called. */
async function hold(page: Page): Promise<() => void> {
  const held = Promise.withResolvers<void>()
  await page.route('**/trpc/**', async (route) => {
    await held.promise
    await route.continue().catch(() => {})
  })
  return held.resolve
}

it('shows a visitor what the last visit saw, until the service answers', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, '/offers')
  await page.waitForSelector('tbody tr')
  const again = await page.context().newPage()
  await page.close()
  const release = await hold(again)
  await again.goto(`${bed.url}/app`)
  await again.waitForSelector('tbody tr')
  release()
  await settled(again)
  assert.equal(errors, [])
  await close()
})

it('shows an account what its tab saw, until the service answers or it logs out', async ({
  bed,
  browser,
}) => {
  const { page, errors, close } = await openTab(browser)
  await logIn(page, bed, 'creator', '/dashboard')
  await page.waitForSelector('.figures dd')
  const figures = await page.innerText('.figures')
  const release = await hold(page)
  await page.reload()
  await page.waitForSelector('.figures dd')
  assert.is(await page.innerText('.figures'), figures)
  release()
  await settled(page)
  const kept = () => page.evaluate('sessionStorage.getItem("portal.answers")')
  assert.match(String(await kept()), 'dashboard')
  await page.click('button:has-text("Log out")')
  await page.waitForSelector('a[href="/app/login"]')
  await page.reload()
  await page.waitForSelector('tbody tr')
  assert.is(await kept(), 'null')
  assert.equal(errors, [])
  await close()
})

it('loads a page again that names scripts of before a deployment', async ({ bed, browser }) => {
  const { page, errors, close } = await openTab(browser)
  const old = async (route: Route) => {
    const answer = await route.fetch()
    const { link: _, ...headers } = answer.headers()
    await route.fulfill({ headers, body: (await answer.text()).replace(/[\w-]+(?=\.js)/g, 'main-GONE') })
  }
  await page.route('**/app/offers', old, { times: 1 })
  await page.goto(`${bed.url}/app/offers`, { waitUntil: 'commit' })
  await page.waitForSelector('tbody tr')
  assert.is(await page.evaluate('performance.getEntriesByType("navigation")[0].type'), 'reload')
  assert.equal(errors, [])
  await close()
})

it('tries again later while the page and its scripts come from two versions', async ({ bed, browser }) => {
  const { page, close } = await openTab(browser)
  await page.clock.install()
  // A script of another version, which lacks what the first one imports.
  await page.route(/\/assets\/chunk-/, (route) => route.continue({ url: `${bed.url}/app/assets/gone.js` }), {
    times: 1,
  })
  await page.goto(`${bed.url}/app/offers`)
  assert.is(await page.locator('tbody').count(), 0)
  const later = async () => {
    await page.clock.runFor(5000).catch(() => {})
    return (await page.locator('tbody tr').count()) > 0
  }
  assert.ok(await eventually(later))
  await close()
})

it.run()
