// database: none
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { minifiedStoreScript } from '../../scripts/store-script.ts'
import { webSuite } from '../test/testkit/web.ts'

const settings = { TRACKING_PARAMETER: 'via', CORS_ORIGINS: 'https://pages.example.pk' }
const it = webSuite('the script for stores', 'sqlite', settings)

it('is minified from its source, within 3 KB and 1.7 KB compressed', () => {
  const file = new URL('../../shared/store-script/store.min.js', import.meta.url)
  const hint = 'run "npm run store-script" and commit the file'
  assert.is(readFileSync(file, 'utf8'), minifiedStoreScript(), hint)
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
  const again = await fetch(`${bed.base}/store.js`, { headers: { 'if-none-match': etag } })
  assert.equal([again.status, await again.text(), again.headers.get('etag')], [304, '', etag])
  assert.is(again.headers.get('cache-control'), 'public, max-age=3600')
})

it.run()
