// database: none
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { minifiedStoreScript } from '../../scripts/store-script.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'

const it = suite<{ bed: WebTestbed }>('the script for stores')

it.before(async (world) => {
  world.bed = await openWebTestbed('sqlite', {
    TRACKING_PARAMETER: 'via',
    CORS_ORIGINS: 'https://pages.example.pk',
  })
})
it.after(({ bed }) => bed.close())

it('is minified from its source, within 3 KB and 1.7 KB compressed', () => {
  const file = new URL('../../shared/store-script/store.min.js', import.meta.url)
  assert.is(
    readFileSync(file, 'utf8'),
    minifiedStoreScript(),
    'run "npm run store-script" and commit the file',
  )
  const served = minifiedStoreScript().replace('TRACKING_PARAMETER', 'aff_ref')
  assert.ok(served.length <= 3000, `${served.length} bytes`)
  const zipped = gzipSync(served, { level: 9 }).length
  assert.ok(zipped <= 1700, `${zipped} bytes compressed`)
})

it('is served to any origin and cached for an hour, with the parameter of the settings', async ({ bed }) => {
  const answer = await fetch(`${bed.base}/store.js`, {
    headers: { 'accept-encoding': 'identity', origin: 'https://pages.example.pk' },
  })
  const text = await answer.text()
  assert.is(text, minifiedStoreScript().replace('TRACKING_PARAMETER', 'via'))
  const expected = {
    'access-control-allow-origin': '*',
    'cache-control': 'public, max-age=3600',
    'content-type': 'text/javascript; charset=utf-8',
    'cross-origin-resource-policy': 'cross-origin',
    'x-content-type-options': 'nosniff',
    vary: 'Accept-Encoding',
  }
  for (const [name, value] of Object.entries(expected)) assert.is(answer.headers.get(name), value, name)
  const zipped = await fetch(`${bed.base}/store.js`, { headers: { 'accept-encoding': 'br, gzip' } })
  assert.is(zipped.headers.get('content-encoding'), 'gzip')
  assert.is(await zipped.text(), text)
  const head = await fetch(`${bed.base}/store.js`, { method: 'HEAD' })
  assert.equal([head.status, head.headers.get('etag')], [200, answer.headers.get('etag')])
})

it('is not sent again to a browser that has it', async ({ bed }) => {
  const etag = (await fetch(`${bed.base}/store.js`)).headers.get('etag') ?? ''
  const ask = (tags: string) => fetch(`${bed.base}/store.js`, { headers: { 'if-none-match': tags } })
  for (const tags of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
    const answer = await ask(tags)
    assert.equal([answer.status, await answer.text(), answer.headers.get('etag')], [304, '', etag], tags)
    assert.is(answer.headers.get('cache-control'), 'public, max-age=3600')
  }
  for (const tags of ['"other"', 'W/"x"', etag.slice(0, -2), ',,'])
    assert.is((await ask(tags)).status, 200, tags)
})

it.run()
