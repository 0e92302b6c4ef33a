// database: none
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed } from '../test/testkit/testbed.ts'
import { serverOver } from '../test/testkit/web.ts'

test('the client package is a clear 404 where it was not built, then sent as built, and not again to who has it', async () => {
  const { platform, testDatabase, close } = await openTestbed('sqlite')
  const clientPackage = join(testDatabase.folder, 'client.tgz')
  const server = await serverOver(platform, { clientPackage })
  const ask = (headers = {}) => server.inject({ url: '/client.tgz', headers })
  const missing = await ask()
  assert.equal([missing.statusCode, missing.json().code], [404, 'not_found'])
  assert.match(missing.json().detail, /npm ci && npm run build/)
  const bytes = gzipSync('a package')
  writeFileSync(clientPackage, bytes)
  const first = await ask({ 'accept-encoding': 'gzip' })
  const { etag, 'content-type': type, 'cache-control': cache, 'content-encoding': encoding } = first.headers
  assert.equal(
    [first.statusCode, type, cache, encoding],
    [200, 'application/gzip', 'public, no-cache', undefined],
  )
  assert.ok(first.rawPayload.equals(bytes))
  const again = await ask({ 'if-none-match': etag })
  assert.equal([again.statusCode, again.body, again.headers.etag], [304, '', etag])
  await server.close()
  await close()
})

test.run()
