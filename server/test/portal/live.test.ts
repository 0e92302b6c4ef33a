// proof only
import type { Browser, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../../links/links.service.ts'
import type { SessionActor } from '../../platform/api/procedure.ts'
import { createIds } from '../../platform/ids.ts'
import type { Platform } from '../../platform/platform.ts'
import { logout } from '../../users/sessions.service.ts'
import { BROWSERS, onBrowser } from '../testkit/browsers.ts'
import { testDialects } from '../testkit/databases.ts'
import { eventually } from '../testkit/eventually.ts'
import { openWebSide, type WebSide } from '../testkit/live-followers.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import type { Shop } from '../testkit/marketplace.ts'
import { logIn } from '../testkit/people.ts'
import { openTcpProxy, type TcpProxy } from '../testkit/tcp-proxy.ts'
import { open, openTab, type Tab } from './browsing.ts'

interface World {
  browser: Browser
  web: WebSide
  /** Between the browser and the service. */
  proxy: TcpProxy
  shop: Shop
  link: LinkRecord
  tab: Tab
  openSales(): Promise<void>
}

/** Whether the page has been loaded again since `mark`. */
const mark = (page: Page) => page.evaluate('void (globalThis.isMarked = true)')
const isMarked = (page: Page) => page.evaluate('globalThis.isMarked === true')

const ordersIn = (page: Page) => page.locator('tbody td:first-child').allInnerTexts()
const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `#${from + index}`)

/** A tab in which the session of the account is kept. */
async function openTabOf(browser: Browser, platform: Platform, actor: SessionActor, url: string) {
  const tab = await openTab(browser)
  const token = await logIn(platform, actor)
  await tab.page.context().addCookies([{ name: 'session', value: token, url, httpOnly: true }])
  const account = JSON.stringify({ id: actor.userId, role: actor.role, display_name: 'Kept' })
  // In the empty page before it, Firefox refuses storage.
  const keep = `localStorage.setItem('portal.account', '${account}')`
  await tab.page.addInitScript(`try { ${keep} } catch {}`)
  return tab
}

/** Chromium on each database, Firefox on one. */
const SUITES = BROWSERS.flatMap((kind) =>
  marketSuites<World>(`an open page of a merchant in ${kind.name}`, {
    settings: { RATE_LIMIT_PUBLIC: '0', RATE_LIMIT_USER: '0' },
    idsOf: createIds,
    dialects: kind.name === 'Chromium' ? testDialects() : ['sqlite'],
  }).map(({ it }) => ({ it, kind })),
)

for (const { it, kind } of SUITES) {
  it.before(async (world) => {
    world.browser = await kind.launch({})
  })
  it.after(({ browser }) => browser?.close())
  it.before.each(async (world) => {
    const { market, platform } = world
    world.shop = await market.addShop('Kurta House')
    world.link = await market.addLink(world.shop, await market.addCreator('Ayesha'))
    world.web = await openWebSide(platform)
    world.proxy = await openTcpProxy({ host: '127.0.0.1', port: Number(new URL(world.web.base).port) })
    const url = `http://127.0.0.1:${world.proxy.port}`
    world.tab = await openTabOf(world.browser, platform, world.shop.actor, url)
    world.openSales = () => open(world.tab.page, url, '/sales')
  })
  it.after.each(async ({ tab, proxy, web }) => {
    await tab?.close()
    await proxy?.close()
    await web?.close()
  })

  const sell = async ({ market, shop, link }: Parameters<Parameters<typeof it>[1]>[0], names: string[]) => {
    for (const name of names) {
      market.clock.pass(1000)
      await market.order(shop, link, 400_000, { name })
    }
    await market.drainUntilIdle()
  }

  it('shows each sale once that happened while its connection was cut', async (world) => {
    const { page } = world.tab
    await world.openSales()
    await mark(page)
    await sell(world, ['#1'])
    await page.getByText('#1', { exact: true }).waitFor()
    await world.proxy.cut()
    await page.waitForSelector('.bar')
    await sell(world, numbers(2, 4))
    await world.proxy.mend()
    await page.waitForSelector('.bar', { state: 'detached' })
    await page.getByText('#4', { exact: true }).waitFor()
    await sell(world, ['#5'])
    await page.getByText('#5', { exact: true }).waitFor()
    assert.equal(await ordersIn(page), numbers(1, 5).reverse())
    assert.ok(await isMarked(page))
  })

  it('shows the log-in if its session ended while its connection was cut', async (world) => {
    const { page } = world.tab
    await world.openSales()
    await mark(page)
    await world.proxy.cut()
    await page.waitForSelector('.bar')
    await logout(world.platform, world.shop.actor)
    await world.proxy.mend()
    await page.waitForSelector('h1:has-text("Log in first")')
    assert.ok(await isMarked(page))
  })

  it('reads a thousand sales page by page, each once and in order', async (world) => {
    const { page, errors } = world.tab
    await sell(world, numbers(1, 1000))
    await world.openSales()
    const shown = page.getByRole('button', { name: 'Show more' })
    for (let rows = 50; rows < 1000; rows += 50) {
      await shown.click()
      assert.ok(await eventually(async () => (await page.locator('tbody tr').count()) >= rows + 50))
    }
    await shown.waitFor({ state: 'detached' })
    assert.equal(await ordersIn(page), numbers(1, 1000).reverse())
    assert.equal(errors, [])
  })

  onBrowser(kind, it).run()
}
