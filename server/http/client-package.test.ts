// database: none
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { serverOver } from '../test/testkit/web.ts'

interface World {
  bed: Testbed
  folder: string
}

const it = suite<World>('the client package of a service')
it.before(async (world) => {
  world.bed = await openTestbed('sqlite')
  world.folder = mkdtempSync(join(tmpdir(), 'affiliate-client-package-'))
})
it.after(async ({ bed, folder }) => {
  await bed.close()
  rmSync(folder, { recursive: true, force: true })
})

it('is served as it was built, and not again to who has it', async ({ bed, folder }) => {
  const clientPackage = join(folder, 'client.tgz')
  const bytes = gzipSync('a package')
  writeFileSync(clientPackage, bytes)
  const server = await serverOver(bed.platform, { clientPackage })
  const ask = (headers = {}) => server.inject({ url: '/client.tgz', headers })
  const first = await ask({ 'accept-encoding': 'gzip' })
  const { etag, 'content-type': type, 'cache-control': cache, 'content-encoding': encoding } = first.headers
  assert.equal(
    [first.statusCode, type, cache, encoding],
    [200, 'application/gzip', 'public, no-cache', undefined],
  )
  assert.ok(first.rawPayload.equals(bytes))
  const again = await ask({ 'if-none-match': etag })
  assert.equal([again.statusCode, again.body, again.headers.etag], [304, '', etag])
  assert.is((await ask({ 'if-none-match': '"other"' })).statusCode, 200)
  await server.close()
})

it('is a clear 404 where it was not built, until it is', async ({ bed, folder }) => {
  const clientPackage = join(folder, 'later.tgz')
  const server = await serverOver(bed.platform, { clientPackage })
  const missing = await server.inject('/client.tgz')
  const { code, detail } = missing.json()
  assert.equal([missing.statusCode, code], [404, 'not_found'])
  assert.match(detail, /npm ci && npm run build/)
  writeFileSync(clientPackage, gzipSync('built'))
  assert.is((await server.inject('/client.tgz')).statusCode, 200)
  await server.close()
})

it.run()
