// database: none
import { readdirSync, readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { webSuite } from '../../test/testkit/web.ts'
import { guideLink, renderGuide, summarizeGuide } from './render-guide.ts'

const NAMES = readdirSync(new URL('../../guides/', import.meta.url))
  .filter((file) => file.endsWith('.md'))
  .map((file) => file.slice(0, -'.md'.length))

const it = webSuite('the guides')

it('are listed on one page, each with a title and a sentence', async ({ bed }) => {
  const index = await fetch(`${bed.base}/docs/guides`)
  assert.is(index.status, 200)
  const text = await index.text()
  const items = [...text.matchAll(/<li><a href="guides\/([a-z-]+)">([^<]+)<\/a><p>(.+?)<\/p>/gs)]
  const listed = items.map(([, name]) => name)
  assert.equal(listed.toSorted(), NAMES.toSorted())
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
  const inReadme = [...readme.matchAll(/^\| \[[^\]]+\]\(server\/guides\/([a-z-]+)\.md\)/gm)]
  const expected = inReadme.map(([, name]) => name)
  assert.equal(listed, expected, 'in the order of the README')
  for (const [, name, , summary = ''] of items) assert.match(summary, /.{20}\.$/, name)
})

it('run no script but ours, and their links lead to pages and sections that exist', async ({ bed }) => {
  const pages = new Map<string, string>()
  for (const name of NAMES) {
    const page = await fetch(`${bed.base}/docs/guides/${name}`)
    assert.is(page.status, 200, name)
    assert.is(page.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self';/)
    pages.set(`/docs/guides/${name}`, await page.text())
  }
  for (const [path, text] of pages) {
    const scripts = [...text.matchAll(/<script.*?>/g)].map(([tag]) => tag)
    assert.equal(scripts, ['<script type="module" src="../../docs/pages.js">'])
    assert.not.match(text, /<style| style=|\son\w+=/)
    const prose = text.replace(/<code>.*?<\/code>/gs, '').replace(/<[^>]+>/g, '')
    assert.not.match(prose, /\*\*|\]\(|```|^#+ |^\|/m, `${path}: Markdown is not shown`)
    assert.not.match(text, /data-label="[^"]*`/)
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
  for (const path of ['/docs/guides', '/docs/guides/settings']) {
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
  const shown = own.text.replace(/<[^>]+>/g, '')
  assert.match(shown, `&lt;script src=&quot;${base}/store.js&quot; async&gt;`)
  assert.match(shown, '&quot;shop_domain&quot;:&quot;kurta-corner.myshopify.com&quot;')
  assert.not.match(own.text, /https:\/\/HOST|rafi-ajrak/)
  assert.is.not(own.etag, plain.etag)
  for (const query of [
    'store=<script>alert(1)</script>.pk',
    'store=a.pk&store=b.pk',
    'store=%00',
    'store=',
  ]) {
    const { text } = await page(`?${query}`)
    assert.not.match(text, /<script>|alert/)
    assert.match(text, 'rafi-ajrak.myshopify.com', query)
  }
})

it('have drawings, served as pictures', async ({ bed }) => {
  const markdown = '# A\n\n![a "b"](drawings/theme-script.svg) ![c](https://x.example/c.png)\n'
  const { body } = renderGuide(markdown, [])
  assert.match(body, '<img class="drawing" src="drawings/theme-script.svg" alt="a &#34;b&#34;"> c')
  const picture = await fetch(`${bed.base}/docs/guides/drawings/theme-script.svg`)
  assert.equal([picture.status, picture.headers.get('content-type')], [200, 'image/svg+xml'])
  assert.not.match(await picture.text(), /<script|<style|href/)
})

it('link other guides as pages, and no other files', () => {
  const others = '../ARCHITECTURE.md missing.md ../../operate.md javascript:alert(1) //x.example'.split(' ')
  for (const [href, link] of [
    ['operate.md#a-day', 'operate#a-day'],
    ['#here', '#here'],
    ['https://example.com/a', 'https://example.com/a'],
    ...others.map((href) => [href, null] as const),
  ] as const)
    assert.is(guideLink(href, ['operate']), link, href)
})

it('show HTML as text, and give each heading an anchor of its own', () => {
  const { body, sections } = renderGuide(
    '# A\n\n## A\n\n<script>x</script>\n\n<b>[y](javascript:z)</b>\n\n[y](javascript:z)\n\n<!-- note -->\n\n```mermaid\na --> b\n```\n\n| a |\n|--:|\n| 1<br>2 |\n',
    [],
  )
  assert.not.match(body, /<script|<b>|href="javascript:|note/)
  assert.match(body, /<code>a --&#62; b/)
  assert.match(body, /<td class="right">1<br>2<\/td>/)
  assert.equal(sections, [{ anchor: 'a-1', title: 'A' }])
})

it('have colors in code of known languages', () => {
  const { body } = renderGuide('```sh\n# <x>\ncurl "$BASE"\n```\n', [])
  assert.match(body, '<span class="hljs-comment"># &lt;x&gt;</span>')
  assert.match(body, '<span class="hljs-variable">$BASE</span>')
})

it('are searched by words, which lead to the section that has them all', async ({ bed }) => {
  const search = async (query: string) => {
    const answer = await fetch(`${bed.base}/docs/guides?q=${encodeURIComponent(query)}`)
    assert.is(answer.status, 200)
    return answer.text()
  }
  const found = await search('PgBouncer transaction')
  const [, href = ''] =
    /<ol class="guides">\s*<li><a href="([^"]+)">Operate: PgBouncer<\/a>/.exec(found) ?? []
  assert.is(href, 'guides/operate#pgbouncer')
  assert.match(found, '<mark>transaction</mark>')
  const [page] = href.split('#')
  assert.match(await (await fetch(`${bed.base}/docs/${page}`)).text(), 'id="pgbouncer"')
  for (const query of ['xyzzy pgbouncer', '<script>alert(1)</script>', '"', '.', 'x'.repeat(500)]) {
    const text = await search(query)
    assert.not.match(text, /<script>|<ol class="guides">\s*<\/ol>/, query)
  }
  assert.match(await search('xyzzy'), 'Nothing found.')
  assert.match(await search(' '), '<h1>Guides</h1>')
  assert.match(await search('quot lt amp'), /Nothing found|<mark>/)
})

it('are summarized by the first sentence below the title', () => {
  assert.equal(summarizeGuide('# The `a`\n\nSet `PORT` to\n3000.5 & [go](x.md). Then more.\n'), {
    title: 'The a',
    summary: 'Set <code>PORT</code> to\n3000.5 &amp; go.',
  })
})

it.run()
