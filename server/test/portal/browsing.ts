import { readFileSync } from 'node:fs'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { BROWSERS, browserSuite, type SCHEMES } from '../testkit/browsers.ts'
import { GIVE_UP_MS } from '../testkit/eventually.ts'
import { openSeededService, type SeededService } from './seeded-service.ts'

export const LANGUAGES = ['en-GB', 'ur-PK'] as const
export const ROLES = ['visitor', 'merchant', 'creator', 'admin'] as const
export type Viewer = (typeof ROLES)[number]

export interface PortalWorld {
  bed: SeededService
  browser: Browser
}

/** A suite for each browser, over a seeded service. */
export function portalSuite(name: string, scheme?: (typeof SCHEMES)[number], kinds = BROWSERS) {
  const it = browserSuite<PortalWorld>(name, () => ({ scheme }), kinds)
  it.before(async (world) => {
    world.bed = await openSeededService()
  })
  it.after(({ bed }) => bed?.close())
  return it
}

export interface Tab {
  page: Page
  /** What the page wrote to its console as an error, what it threw, and what it asked of another host. */
  errors: string[]
  close(): Promise<void>
}

/** A fresh profile with one tab. */
export async function openTab(browser: Browser, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext({ locale: 'en-GB', ...options })
  context.setDefaultTimeout(GIVE_UP_MS)
  const page = await context.newPage()
  return { page, errors: errorsOf(page), close: () => context.close() }
}

export function errorsOf(page: Page): string[] {
  const errors: string[] = []
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', (error) => errors.push(String(error)))
  // Firefox reports no console message for a refused call.
  const isFirefox = page.context().browser()?.browserType().name() === 'firefox'
  page.on('response', (answer) => {
    if (isFirefox && answer.status() >= 400) errors.push(`a status of ${answer.status()}`)
  })
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url())
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') errors.push(`asks ${request.url()}`)
  })
  return errors
}

/** Logs in as the seeded account of the role, and comes out at the path. */
export async function logIn(
  page: Page,
  { url, seeded }: SeededService,
  role: Viewer,
  path: string,
): Promise<void> {
  if (role === 'visitor') return open(page, url, path)
  const email = seeded.accounts.find((account) => account.role === role)?.email ?? ''
  await page.goto(`${url}/app/login?back=${encodeURIComponent(path)}`)
  await fill(page, { email, password: seeded.password })
  await page.waitForURL(`${url}/app${path}`)
  await settled(page)
}

/** Fills in the form of the page, and sends it. */
export async function fill(page: Page, values: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(values)) await page.fill(`[name=${name}]`, value)
  await page.click('form [type=submit]')
}

export async function open(page: Page, url: string, path: string): Promise<void> {
  await page.goto(`${url}/app${path}`)
  await settled(page)
}

/** Waits until the screen has its title and everything that it loads. Not by `waitForFunction`: the page's policy refuses to evaluate strings again. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector('main h1')
  await page.waitForSelector('.skeleton', { state: 'detached' })
}

/** The paths of the screens that a role may see, as `routes.tsx` says. */
export function pathsFor(role: Viewer): string[] {
  const source = readFileSync(new URL('../../../shared/client/portal/routes.tsx', import.meta.url), 'utf8')
  const routes = [...source.matchAll(/\{\s*path: '([^']+)',[^}]*?(?:roles: (\[[^\]]*\]|\w+)[^}]*)?\}/g)]
  assert.ok(routes.length > 5, 'the table of screens has another form')
  const lists = new Map(
    [...source.matchAll(/const (\w+)\b[^=]*= (\[[^\]]*\])/g)].map(([, name, list]) => [name, list]),
  )
  return routes
    .filter(([, , roles]) => roles === undefined || (lists.get(roles) ?? roles).includes(`'${role}'`))
    .map(([, path = '']) => path)
}

/** A path of the kind with parameters, from a link of one of the pages that were seen. */
export const pathLike = (pattern: string, links: Iterable<string>): string | undefined =>
  [...links].find((link) => new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`).test(link))

/** The addresses below `/app` that the page links to. */
export async function linksIn(page: Page): Promise<string[]> {
  const links: string[] = await page.evaluate(
    `[...document.querySelectorAll('main a[href^="/app/"]')].map((link) => link.pathname.slice(4))`,
  )
  return links
}

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** What axe finds wrong with the page. */
export async function complaintsAbout(page: Page): Promise<string[]> {
  await page.evaluate(`window.axe ?? (() => { ${AXE} })()`)
  return page.evaluate(`axe.run().then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html + ' ' + failureSummary)))`)
}
