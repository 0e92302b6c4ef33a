// database: none
import { readdirSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openWebTestbed, type WebTestbed } from '../../test/testkit/web.ts'
import { guideLink, renderGuide, summarizeGuide } from './render-guide.ts'

const NAMES = readdirSync(new URL('../../guides/', import.meta.url))
  .filter((file) => file.endsWith('.md'))
  .map((file) => file.slice(0, -'.md'.length))

const it = suite<{ bed: WebTestbed }>('the guides')

it.before(async (world) => {
  world.bed = await openWebTestbed('sqlite')
})
it.after(({ bed }) => bed.close())

it('are listed on one page, each with a title and a sentence', async ({ bed }) => {
  const index = await fetch(`${bed.base}/docs/guides`)
  assert.is(index.status, 200)
  const text = await index.text()
  const items = [...text.matchAll(/<li><a href="guides\/([a-z-]+)">([^<]+)<\/a><p>(.+?)<\/p>/gs)]
  assert.equal(items.map(([, name]) => name).sort(), [...NAMES].sort())
  for (const [, name, , summary = ''] of items) assert.match(summary, /.{20}\.$/, name)
})

it('are pages without scripts, whose links lead to pages and sections that exist', async ({ bed }) => {
  const pages = new Map<string, string>()
  for (const name of NAMES) {
    const page = await fetch(`${bed.base}/docs/guides/${name}`)
    assert.is(page.status, 200, name)
    assert.is(page.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.not.match(page.headers.get('content-security-policy') ?? '', /script|unsafe/)
    pages.set(`/docs/guides/${name}`, await page.text())
  }
  for (const [path, text] of pages) {
    assert.not.match(text, /<script|<style| style=|\son\w+=/)
    for (const [, href = ''] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
      assert.not.match(href, /^\//, 'relative, for a proxy with a path prefix')
      const url = new URL(href, bed.base + path)
      if (url.origin !== bed.base) continue
      const target = pages.get(url.pathname)
      if (target === undefined) assert.is((await fetch(url)).status, 200, `${path}: ${href}`)
      else if (url.hash) assert.ok(target.includes(` id="${url.hash.slice(1)}"`), `${path}: ${href}`)
    }
  }
})

it('are kept by browsers until they change', async ({ bed }) => {
  for (const path of ['/docs/guides', '/docs/guides/settings', '/docs/guides.css']) {
    const first = await fetch(bed.base + path)
    assert.is(first.headers.get('cache-control'), 'public, max-age=300')
    const etag = first.headers.get('etag') ?? ''
    const headers = { 'if-none-match': `"other", W/${etag}` }
    const again = await fetch(bed.base + path, { headers })
    assert.equal([again.status, await again.text()], [304, ''], path)
  }
})

it('answer an unknown name with a problem, and with a page in a browser', async ({ bed }) => {
  for (const name of ['nothing', 'settings.md', 'guides.css', '..%2fARCHITECTURE', '%2e%2e%2fmain']) {
    const answer = await bed.ask('GET', `/docs/guides/${name}`)
    assert.equal([answer.status, answer.body.code], [404, 'not_found'], name)
    const page = await fetch(`${bed.base}/docs/guides/${name}`, { headers: { accept: 'text/html' } })
    assert.equal([page.status, page.headers.get('content-type')], [404, 'text/html; charset=utf-8'])
    assert.not.match(await page.text(), /settings\.md|ARCHITECTURE|main"/)
  }
})

it('show a merchant their own values, from the address and the settings only', async ({ bed }) => {
  const page = async (query: string) => {
    const answer = await fetch(`${bed.base}/docs/guides/connect-shopify${query}`)
    assert.is(answer.status, 200)
    return { text: await answer.text(), etag: answer.headers.get('etag') }
  }
  const base = bed.platform.publicBaseUrl
  const plain = await page('')
  assert.match(plain.text, 'https://HOST/webhooks/store-sales')
  const own = await page('?store=Kurta-Corner.myshopify.com&utm_source=x')
  assert.match(own.text, `${base}/webhooks/store-sales`)
  assert.match(own.text, `&lt;script src=&#34;${base}/store.js&#34; async&gt;`.replaceAll('&#34;', '&quot;'))
  assert.match(own.text, '&quot;shop_domain&quot;:&quot;kurta-corner.myshopify.com&quot;')
  assert.not.match(own.text, /https:\/\/HOST|rafi-ajrak/)
  assert.is.not(own.etag, plain.etag)
  for (const query of [
    '?store=<script>alert(1)</script>.pk',
    '?store=a.pk&store=b.pk',
    '?store=%00',
    '?store=',
  ]) {
    const { text } = await page(query)
    assert.not.match(text, /<script|alert/)
    assert.match(text, 'rafi-ajrak.myshopify.com', query)
  }
})

it('have drawings, served as pictures', async ({ bed }) => {
  const { body } = renderGuide(
    '# A\n\n![a "b"](drawings/theme-script.svg) ![c](https://x.example/c.png)\n',
    [],
  )
  assert.match(body, '<img class="drawing" src="drawings/theme-script.svg" alt="a &#34;b&#34;"> c')
  const picture = await fetch(`${bed.base}/docs/guides/drawings/theme-script.svg`)
  assert.equal([picture.status, picture.headers.get('content-type')], [200, 'image/svg+xml'])
  assert.not.match(await picture.text(), /<script|<style|href/)
})

it('link other guides as pages, and no other files', () => {
  const names = ['operate']
  assert.is(guideLink('operate.md#a-day', names), 'operate#a-day')
  assert.is(guideLink('#here', names), '#here')
  assert.is(guideLink('https://example.com/a', names), 'https://example.com/a')
  for (const href of [
    '../ARCHITECTURE.md',
    'missing.md',
    '../../operate.md',
    'javascript:alert(1)',
    '//x.example',
  ])
    assert.is(guideLink(href, names), null, href)
})

it('show HTML as text, and give each heading an anchor of its own', () => {
  const { body, sections } = renderGuide(
    '# A\n\n## A\n\n<script>x</script>\n\n<b>[y](javascript:z)</b>\n\n[y](javascript:z)\n\n<!-- note -->\n\n```mermaid\na --> b\n```\n\n| a |\n|--:|\n| 1<br>2 |\n',
    [],
  )
  assert.not.match(body, /<script|<b>|href="javascript:|note/)
  assert.match(body, /<code class="language-mermaid">a --&gt; b/)
  assert.match(body, /<td class="right">1<br>2<\/td>/)
  assert.equal(sections, [{ anchor: 'a-1', title: 'A' }])
})

it('are summarized by the first sentence below the title', () => {
  assert.equal(summarizeGuide('# The `a`\n\nSet `PORT` to\n3000.5 & go. Then more.\n'), {
    title: 'The <code>a</code>',
    summary: 'Set <code>PORT</code> to\n3000.5 &#38; go.',
  })
})

it.run()
