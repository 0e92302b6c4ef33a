// proof only
// database: none
import type { Browser, Page } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Firefox } from '../storefront/firefox.ts'
import { hasChromium, isThere, launchChromium } from '../testkit/chromium.ts'
import {
  complaintsAbout,
  LANGUAGES,
  linksIn,
  logIn,
  open,
  openTab,
  pathLike,
  pathsFor,
  ROLES,
  SCHEMES,
  type Viewer,
} from './browsing.ts'
import { openSeededService, type SeededService } from './seeded-service.ts'

const WIDTHS = [390, 768, 1440, 1920]
const FIREFOX = process.env.FIREFOX ?? '/usr/bin/firefox-esr'
/** Where pictures of the screens are left for people to look at; none unless set. */
const SCREENSHOTS = process.env.PORTAL_SCREENSHOTS

const it = suite<{ bed: SeededService; browser: Browser }>('every screen of the portal')

it.before(async (world) => {
  world.bed = await openSeededService()
})
it.after(({ bed }) => bed.close())

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

for (const role of hasChromium ? ROLES : []) {
  for (const locale of LANGUAGES) {
    it(`${role}, ${locale}`, async ({ bed }) => {
      const browser = await launchChromium()
      try {
        for (const colorScheme of SCHEMES) {
          const { page, errors, close } = await openTab(browser, { locale, colorScheme })
          await logIn(page, bed, role, '/offers')
          const seen = await visit(page, bed.url, role, async (path) => {
            const what = `${path} as ${role} in ${locale}, ${colorScheme}`
            assert.is(await page.getAttribute('html', 'dir'), locale === 'ur-PK' ? 'rtl' : 'ltr')
            assert.equal(await page.locator('.notice.bad').allTextContents(), [], what)
            assert.equal(await complaintsAbout(page), [], what)
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
      } finally {
        await browser.close()
      }
    })
  }
}

if (isThere(FIREFOX)) {
  it('opens in Firefox, and scrolls nothing there', async ({ bed }) => {
    const firefox = await Firefox.start(FIREFOX, 'portal.test', Number(new URL(bed.url).port))
    try {
      for (const role of ROLES) {
        const tab = await firefox.tab(await firefox.profile())
        await tab.resize(390, 800)
        const ready = `document.querySelector('main h1') !== null && document.querySelector('.skeleton') === null`
        if (role !== 'visitor') {
          const email = bed.seeded.accounts.find((account) => account.role === role)?.email
          await tab.open(`${bed.url}/app/login?back=/account`)
          await tab.shows(ready, true)
          await tab.evaluate(`document.querySelector('[name=email]').value = '${email}',
            document.querySelector('[name=password]').value = '${bed.seeded.password}',
            document.querySelector('form [type=submit]').click()`)
          await tab.shows('location.pathname', '/app/account')
        }
        for (const path of pathsFor(role).filter((one) => !one.includes(':'))) {
          await tab.open(`${bed.url}/app${path}`)
          await tab.shows(ready, true)
          await tab.shows('document.querySelector(".notice.bad")?.textContent ?? null', null)
          assert.is(await tab.evaluate('location.pathname'), `/app${path}`)
          assert.is(
            await tab.evaluate('document.documentElement.scrollWidth <= 390'),
            true,
            `${path} as ${role}`,
          )
        }
      }
    } finally {
      await firefox.close()
    }
  })
}

it.run()
