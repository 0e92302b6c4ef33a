import type { BrowserContext, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { eventually } from '../testkit/eventually.ts'
import { DAY } from '../testkit/testbed.ts'
import { HOME, HOST, type Market } from './market.ts'

/** A visitor with a fresh browser profile in front of the store. */
export class Visitor {
  readonly context: BrowserContext
  readonly errors: string[] = []
  readonly #market: Market
  #ahead = 0

  constructor(market: Market, context: BrowserContext) {
    this.#market = market
    this.context = context
  }

  async tab(): Promise<Page> {
    const page = await this.context.newPage()
    page.on('pageerror', (error) => this.errors.push(String(error)))
    return page
  }

  /** Follows an affiliate link; answers the click's id from the page that it leads to. */
  async follow(page: Page, slug: string): Promise<string> {
    await page.goto(`${this.#market.bed.url}/go/${slug}`)
    const reference = new URL(page.url()).searchParams.get('aff_ref')
    assert.ok(reference && page.url().startsWith(HOME), page.url())
    return reference
  }

  /** Opens a page of the store by its plain address, and waits until its requests are over. */
  async open(page: Page, path = ''): Promise<void> {
    await page.goto(HOME + path)
    await this.#market.quiet()
  }

  /** Waits until the browser keeps the reference for later. */
  async remembered(reference: string): Promise<void> {
    await eventually(
      async () => (await this.context.cookies(HOME)).map(({ value }) => value),
      (values) => values.some((value) => value.includes(reference)),
    )
  }

  async add(page: Page): Promise<void> {
    await page.click('[name=add]')
    await page.waitForFunction('document.querySelector("output").textContent.includes("added")')
  }

  async buyFromCart(page: Page): Promise<void> {
    await this.add(page)
    await this.checkOut(page)
  }

  async checkOut(page: Page): Promise<void> {
    await page.click('text=Check out')
    await page.waitForURL('**/thanks/*')
  }

  async buyNow(page: Page): Promise<void> {
    await page.click('text=Buy it now')
    await page.waitForURL('**/thanks/*')
  }

  /** Comes back by the plain address, and buys past the cart. */
  async returnAndBuyNow(page: Page): Promise<void> {
    await this.open(page)
    await this.buyNow(page)
  }

  /** Waits until both the cart and the browser have the reference. */
  async carriedAndKept(reference: string): Promise<void> {
    await this.#market.carried(reference)
    await this.remembered(reference)
  }

  /** What the browser keeps: the entry in localStorage and the cookie, parsed. */
  async kept(page: Page): Promise<{ storage: unknown; cookie: unknown; others: string[] }> {
    const cookies = await this.context.cookies(HOME)
    // Both in one step: a page may keep the reference again, with a later time, between two.
    const [entry, value, others] = await page.evaluate<[string | null, string | null, string[]]>(
      `[
        localStorage.aff_ref ?? null,
        document.cookie.match(/aff_ref=([^;]*)/)?.[1] ?? null,
        [...Object.keys(localStorage), ...Object.keys(sessionStorage)].filter((key) => key !== 'aff_ref'),
      ]`,
    )
    const cookie = cookies.find(({ name }) => name === 'aff_ref')
    if (cookie) assert.equal([cookie.sameSite, cookie.domain, cookie.path], ['Lax', HOST, '/'])
    return {
      storage: entry === null ? null : JSON.parse(entry),
      cookie: value === null ? null : JSON.parse(decodeURIComponent(value)),
      others: [
        ...others,
        ...cookies.map(({ name }) => name).filter((name) => !['cart', 'aff_ref'].includes(name)),
      ],
    }
  }

  /** Closes the store's pages for some days: moving the clock of an open page sets it to 1970 for a moment. */
  async passDays(days: number): Promise<void> {
    this.#ahead += days * DAY
    this.#market.store.passDays(days)
    for (const page of this.context.pages()) await page.goto('about:blank')
    await this.context.clock.setFixedTime(Date.now() + this.#ahead)
  }
}
