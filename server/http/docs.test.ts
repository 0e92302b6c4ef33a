// long
// database: none
import { gunzipSync } from 'node:zlib'
import type { BrowserContext, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { proceduresOf, routesOf } from '../platform/api/procedure.ts'
import { hasChromium, launchChromium } from '../test/testkit/browsers.ts'
import { GIVE_UP_MS } from '../test/testkit/eventually.ts'
import { PLAYS_ALL } from '../test/testkit/proof-size.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { webSuite } from '../test/testkit/web.ts'
import { appRouter } from './router.ts'

/** Where a picture of the page is left for people to look at; none unless set. */
const SCREENSHOT = process.env.DOCS_SCREENSHOT

const it = webSuite('the reference', 'sqlite', { SECURITY_CONTACT: 'mailto:security@example.pk' })

it('is one page and its assets, all of them ours', async ({ bed }) => {
  const page = await fetch(`${bed.base}/docs`)
  const kind = ['content-type', 'x-frame-options'].map((name) => page.headers.get(name))
  assert.equal([page.status, ...kind], [200, 'text/html; charset=utf-8', 'DENY'])
  const text = await page.text()
  assert.not.match(text, /(?:src|<link [^>]*href)="(?:https?:|\/)/)
  const assets = [...text.matchAll(/<(?:script|link) [^>]*(?:src|href)="(docs\/[^"]+)"/g)]
  assert.is(assets.length, 7)
  for (const [, path] of assets) {
    const asset = await fetch(`${bed.base}/${path}`)
    const header = (name: string) => asset.headers.get(name) ?? ''
    assert.equal([asset.status, header('cache-control')], [200, 'public, max-age=3600'], path)
    assert.match(header('content-security-policy'), /^default-src 'none'/)
    assert.match(header('content-type'), /^(text\/(css|javascript); charset=utf-8|image\/png)$/)
    assert.ok((await asset.arrayBuffer()).byteLength > 100)
  }
  for (const path of ['/docs/', '/docs/index.html', '/docs/../package.json', '/docs/..%2fpackage.json'])
    assert.is((await fetch(bed.base + path)).status, 404, path)
})

it('lists every operation before a script has run, registration first, below a short text', async ({
  bed,
}) => {
  const answer = await fetch(`${bed.base}/docs`)
  const text = await answer.text()
  const operation = /<li><a href="#\/[^"]+"><code>([A-Z]+ \S+)<\/code>/g
  const listed = [...text.matchAll(operation)].map(([, name]) => name)
  const { paths } = (await bed.ask('GET', '/openapi.json')).body as { paths: Record<string, object> }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.is(listed[0], 'POST /auth/register')
  assert.equal(listed.toSorted(), operations.sort())
  const [, unfolded = ''] = /<main id="content">(.*?)<details>/s.exec(text) ?? []
  assert.ok(unfolded.replace(/<[^>]+>/g, '').length < 400)
  assert.match(text, '<code>validation_failed</code>', 'the errors are in the folded part')
  const headers = { 'if-none-match': answer.headers.get('etag') ?? '' }
  assert.is((await fetch(`${bed.base}/docs`, { headers })).status, 304)
})

it('is where the bare address leads a browser; other clients get the addresses', async ({ bed }) => {
  const browser = await fetch(`${bed.base}/`, { headers: { accept: 'text/html,*/*' }, redirect: 'manual' })
  assert.equal([browser.status, browser.headers.get('location')], [302, 'app'])
  const index = (await (await fetch(`${bed.base}/`)).json()) as Record<string, string>
  for (const path of [index.portal, index.docs, index.guides, index.openapi, index.health])
    assert.is((await fetch(bed.base + path)).status, 200, path)
})

it('is sent compressed to a client that takes that', async ({ bed }) => {
  for (const path of ['docs/swagger-ui.css', 'openapi.json']) {
    const payloadFor = async (encoding: string) =>
      (await bed.server.inject({ url: `/${path}`, headers: { 'accept-encoding': encoding } })).rawPayload
    const [plain, zipped] = [await payloadFor('identity'), await payloadFor('br, gzip')]
    assert.ok(zipped.length < plain.length / 3)
    assert.ok(gunzipSync(zipped).equals(plain))
  }
})

it('has a security.txt beside it, which names the contact and expires within a year', async ({ bed }) => {
  const answer = await fetch(`${bed.base}/.well-known/security.txt`)
  assert.is(answer.status, 200)
  assert.is(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  const text = await answer.text()
  assert.match(text, /^Contact: mailto:security@example\.pk$/m)
  const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)?.[1] ?? '')
  const days = (expires - bed.clock.now()) / DAY
  assert.ok(days > 30 && days < 365, `${days} days`)
})

if (hasChromium && PLAYS_ALL) {
  it('lists every operation in a real browser, without other requests or complaints', async ({ bed }) => {
    await inChromium(async (browser) => {
      const requests: string[] = []
      const complaints: string[] = []
      browser.on('request', (request) => requests.push(request.url()))
      const page = await browser.newPage()
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
      })
      page.on('pageerror', (error) => complaints.push(String(error)))
      page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`))
      page.on('response', (answer) => {
        if (answer.status() >= 400) complaints.push(`${answer.status()} ${answer.url()}`)
      })
      await page.setViewportSize({ width: 1280, height: 1600 })
      await page.goto(`${bed.base}/docs`)
      await page.waitForSelector('.opblock')
      const partsOf = (part: string) => page.locator(`.opblock-summary-${part}`).allTextContents()
      const [methods, addresses] = [await partsOf('method'), await partsOf('path')]
      // The address carries zero-width spaces, where it may be broken.
      const shown = methods.map((method, at) => `${method} ${addresses[at]}`.replace(/\u200b/g, '').trim())
      for (const { method, path, takesBody } of proceduresOf(appRouter).flatMap(routesOf)) {
        if (takesBody) continue
        const operation = `${method} ${path.replace(/:(\w+)/g, '{$1}')}`
        assert.ok(shown.includes(operation), `${operation} among ${shown.join(', ')}`)
      }
      for (const [path, access] of Object.entries({
        '/auth/register': 'public',
        '/offers': 'token optional',
        '/me': 'token',
        '/webhooks/store-sales': 'signature',
      }))
        assert.is(await accessOf(page, path), access, path)
      if (SCREENSHOT) await page.screenshot({ path: SCREENSHOT })
      await openOperation(page, 'sales.get')
      const generic = page.locator('details.generic')
      assert.match(await generic.locator('summary').innerText(), '401, 429, 500, 503')
      assert.not.ok(await generic.locator('table').first().isVisible(), 'errors of any operation are folded')
      await page.locator('.operation-filter-input').fill('resend')
      await page.locator('.opblock').nth(1).waitFor({ state: 'detached' })
      assert.equal(await page.locator('.opblock-summary-path').innerText(), '/auth/verify-email/resend')
      await page.locator('.operation-filter-input').fill('')
      assert.equal(await tryOut(page), 200, 'and a call from the page reaches the service')
      if (SCREENSHOT) await page.screenshot({ path: SCREENSHOT.replace(/(\.\w+)$/, '-call$1') })
      await page.setViewportSize({ width: 390, height: 844 })
      for (const id of ['offers.list', 'sales.list']) await openOperation(page, id)
      assert.is(await page.evaluate('document.documentElement.scrollWidth'), 390, 'fits a phone')
      if (SCREENSHOT)
        await page.screenshot({ path: SCREENSHOT.replace(/(\.\w+)$/, '-phone$1'), fullPage: true })
      assert.ok(requests.length >= 7)
      for (const url of requests) {
        const { origin, protocol } = new URL(url)
        assert.ok(origin === bed.base || protocol === 'data:', `asked ${url}`)
      }
      assert.equal(complaints, [])
    })
  })

  it('shows a phone the list, until an operation is opened', async ({ bed }) => {
    await inChromium(async (browser) => {
      const page = await browser.newPage()
      await page.setViewportSize({ width: 390, height: 844 })
      const fetched = page.waitForResponse((answer) => answer.url().endsWith('/openapi.json'))
      await page.goto(`${bed.base}/docs`)
      await fetched
      assert.is(await page.locator('.opblock').count(), 0)
      await page.getByRole('link', { name: 'POST /offers', exact: true }).click()
      const opened = page.locator('.opblock.is-open')
      await opened.locator('.responses-table').first().waitFor()
      assert.match((await opened.getAttribute('id')) ?? '', /offers\\\.create$/)
    })
  })
} else if (!hasChromium) {
  it.skip('there is no Chromium at /usr/bin/chromium to show the reference in', () => {})
}

it.run()

/** Who may call the first operation of a path, as the page says it. */
function accessOf(page: Page, path: string): Promise<string> {
  const summary = page.locator('.opblock-summary', { has: page.locator(`[data-path="${path}"]`) })
  return summary.locator('.access').first().innerText()
}

/** Expands an operation, until its responses are shown. */
async function openOperation(page: Page, operationId: string): Promise<void> {
  const block = page.locator('.opblock', { has: page.locator(`a[href$="/${operationId}"]`) })
  await block.locator('.opblock-summary-control').click()
  await block.locator('.responses-table').first().waitFor()
}

/** Opens `GET /healthz` on the page and has it called; answers the status that the page shows. */
async function tryOut(page: Page): Promise<number> {
  const block = page.locator('#operations-operation-health')
  await block.locator('.opblock-summary-control').click()
  await block.getByRole('button', { name: 'Try it out' }).click()
  await block.getByRole('button', { name: 'Execute' }).click()
  const status = await block.locator('.live-responses-table .response-col_status').last().innerText()
  return Number.parseInt(status, 10)
}

/** A browser of its own, gone when `work` ends. */
async function inChromium(work: (context: BrowserContext) => Promise<void>): Promise<void> {
  const browser = await launchChromium()
  try {
    const context = await browser.newContext()
    context.setDefaultTimeout(GIVE_UP_MS)
    await work(context)
  } finally {
    await browser.close()
  }
}
