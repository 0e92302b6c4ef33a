// database: none
import { gunzipSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { openWebTestbed, webSuite } from '../test/testkit/web.ts'

const it = webSuite('the portal', 'sqlite', { MARKETPLACE_NAME: 'Bazaar <& $&' })

/** The names of the page's scripts. */
const scriptsIn = (page: string) => [...page.matchAll(/\/app\/assets\/([\w-]+\.js)/g)].map(([, name]) => name)

it('is one page at every path, which allows its own script and styles only', async ({ bed }) => {
  const first = await bed.server.inject('/app')
  assert.is(first.statusCode, 200)
  assert.is(first.headers['content-type'], 'text/html; charset=utf-8')
  const policy = String(first.headers['content-security-policy'])
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self' 'sha256-[\w+/]{43}=';/)
  assert.not.match(policy, /unsafe/)
  assert.not.match(first.body, /<script>|\son\w+=|style=/)
  for (const path of ['/app/', '/app/offers', '/app/sales/019c3f5e?x=1', '/app/../app/%3Cscript%3E'])
    assert.is((await bed.server.inject(path)).body, first.body, path)
  const { etag } = first.headers
  const again = await bed.server.inject({ url: '/app', headers: { 'if-none-match': String(etag) } })
  assert.equal([again.statusCode, again.body], [304, ''])
  assert.is(again.headers['content-security-policy'], policy)
})

it('has scripts that are kept for good, compressed, and together small', async ({ bed }) => {
  const headers = { 'accept-encoding': 'gzip' }
  const { body, rawPayload } = await bed.server.inject({ url: '/app', headers })
  assert.not.ok(body.startsWith('<!doctype'))
  const names = new Set(scriptsIn(gunzipSync(rawPayload).toString()))
  assert.ok(names.size > 0)
  let bytes = rawPayload.length
  // Chunks that are loaded on demand are named in the others.
  for (const name of names) {
    const url = `/app/assets/${name}`
    const script = await bed.server.inject({ url, headers })
    assert.is(script.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.is(script.headers['content-type'], 'text/javascript; charset=utf-8')
    bytes += script.rawPayload.length
    const text = gunzipSync(script.rawPayload).toString()
    assert.is((await bed.server.inject(url)).body, text)
    for (const [, chunk] of text.matchAll(/"\.\/([\w-]+\.js)"/g)) names.add(chunk)
  }
  assert.ok(bytes < 120 * 1024, `${bytes} bytes`)
})

it('sends a script that loads the page again in place of one that is gone', async ({ bed }) => {
  const { headers, body } = await bed.server.inject('/app/assets/main-OUTDATED.js')
  assert.is(headers['content-type'], 'text/javascript; charset=utf-8')
  assert.is(headers['cache-control'], 'no-store')
  assert.match(body, 'location.reload()')
})

it('names what the first view of a browser needs beside the scripts of the page', async ({ bed }) => {
  const linksTo = async (url: string, headers: Record<string, string> = {}) =>
    (await bed.server.inject({ url, headers })).headers.link
  const catalogue = await linksTo('/app')
  const [, call = ''] = /^<(.+)>; rel=preload; as=fetch; crossorigin$/.exec(String(catalogue)) ?? []
  const answers = (await bed.server.inject(call)).json()
  assert.ok(answers.every(({ result }: typeof answers) => Array.isArray(result.data.items)))
  assert.is(await linksTo('/app/offers'), catalogue)
  for (const path of ['/app/offers?q=x', '/app/login']) assert.is(await linksTo(path), undefined)
  const named = [
    [{ cookie: 'session=x' }, 'members'],
    [{ 'accept-language': 'ur-PK,en;q=0.5' }, 'urdu'],
  ] as const
  for (const [headers, name] of named) {
    const link = String(await linksTo('/app/login', headers))
    const [, script = ''] = /^<(.+)>; rel=modulepreload$/.exec(link) ?? []
    assert.match(script, `/app/assets/${name}-`)
    assert.match(String((await bed.server.inject(script)).headers['cache-control']), 'immutable')
  }
})

it('has the name of the marketplace', async ({ bed }) => {
  const { body } = await bed.server.inject('/app')
  assert.match(body, '<title>Bazaar &#60;&#38; $&#38;</title>')
  assert.match(body, '<span class="brand">Bazaar &#60;&#38; $&#38;</span>')
})

it('is not there with PORTAL=off, and browsers are led to the reference', async () => {
  const bed = await openWebTestbed('sqlite', { PORTAL: 'off' })
  for (const path of ['/app', '/app/offers']) {
    const { statusCode, body } = await bed.server.inject(path)
    assert.equal([statusCode, JSON.parse(body).detail], [404, 'No such path.'])
  }
  const index = await bed.server.inject({ url: '/', headers: { accept: 'text/html' } })
  assert.equal([index.statusCode, index.headers.location], [302, 'docs'])
  assert.not('portal' in (await bed.server.inject('/')).json())
  await bed.close()
})

it.run()
