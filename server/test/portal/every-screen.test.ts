// long
// proof only
// database: none
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { SCHEMES } from '../testkit/browsers.ts'
import {
  complaintsAbout,
  LANGUAGES,
  linksIn,
  logIn,
  open,
  openTab,
  pathLike,
  pathsFor,
  portalSuite,
  ROLES,
  type Viewer,
} from './browsing.ts'
import type { SeededService } from './seeded-service.ts'

const WIDTHS = [390, 768, 1440, 1920]
/** Where pictures of the screens are left for people to look at; none unless set. */
const SCREENSHOTS = process.env.PORTAL_SCREENSHOTS

/** Opens each screen of the role, and calls `look` there; the ones with parameters are found by the links of others. */
async function visit(
  page: Page,
  url: string,
  role: Viewer,
  look: (path: string) => Promise<void>,
): Promise<number> {
  const links = new Set<string>()
  const [own, found] = [
    pathsFor(role).filter((path) => !path.includes(':')),
    pathsFor(role).filter((path) => path.includes(':')),
  ]
  for (const path of [...own, ...found]) {
    const real = path.includes(':') ? pathLike(path, links) : path
    if (real === undefined) continue
    await open(page, url, real)
    for (const link of await linksIn(page)) links.add(link)
    await look(path)
  }
  return own.length
}

/** Opens all screens of the role in one language. */
async function look(browser: Browser, bed: SeededService, role: Viewer, options: BrowserContextOptions) {
  const { locale, colorScheme } = options
  const { page, errors, close } = await openTab(browser, options)
  // Slow there; the colors are those of Chromium.
  const isAxeDue = browser.browserType().name() === 'chromium' || colorScheme === 'light'
  await logIn(page, bed, role, '/offers')
  const seen = await visit(page, bed.url, role, async (path) => {
    const what = `${path} as ${role} in ${locale}, ${colorScheme}`
    assert.is(await page.evaluate(`matchMedia('(prefers-color-scheme: ${colorScheme})').matches`), true)
    assert.is(await page.getAttribute('html', 'dir'), locale === 'ur-PK' ? 'rtl' : 'ltr')
    assert.equal(await page.locator('.notice.bad').allTextContents(), [], what)
    if (isAxeDue) assert.equal(await complaintsAbout(page), [], what)
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      const name = `${role}-${locale}-${colorScheme}-${width}${path.replaceAll(/[/:]+/g, '-')}.png`
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${name}`, fullPage: true })
      assert.ok(
        Number(await page.evaluate('document.documentElement.scrollWidth')) <= width,
        `${what} scrolls at ${width}`,
      )
    }
  })
  assert.ok(seen > 1)
  assert.equal(errors, [])
  await close()
}

for (const colorScheme of SCHEMES) {
  const it = portalSuite(`every screen of the portal, ${colorScheme},`, colorScheme)
  for (const role of ROLES) {
    for (const locale of LANGUAGES)
      it(`${role}, ${locale}`, ({ bed, browser }) => look(browser, bed, role, { locale, colorScheme }))
  }
  it.run()
}
