// database: none
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
import { openS3Server } from '../../test/testkit/s3-server.ts'
import { readConfig, SettingError } from '../config.ts'
import { openStorage } from './open-storage.ts'
import type { FileStorage } from './storage.ts'

const KEY = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e-1.csv'

async function* pieces(...parts: string[]) {
  yield* parts
}

interface Place {
  storage: FileStorage
  close(): Promise<void>
}

const PLACES: Record<string, () => Promise<Place>> = {
  async 'a local folder'() {
    const folder = mkdtempSync(join(tmpdir(), 'affiliate-storage-'))
    const config = readConfig({ DATA_DIR: folder })
    return {
      storage: await openStorage(config, join(folder, 'files')),
      async close() {
        assert.equal(readdirSync(join(folder, 'files')), [], 'nothing is left behind')
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
  async 'a bucket'() {
    const server = await openS3Server('files-of-test')
    const storage = await openStorage(readConfig(server.settings), 's3://files-of-test/some')
    return {
      storage,
      async close() {
        storage.close()
        await server.close()
      },
    }
  },
}

for (const [name, open] of Object.entries(PLACES)) {
  const it = suite(`files in ${name}`)
  let place: Place

  it.before(async () => {
    place = await open()
  })
  it.after(async () => {
    await place.close()
  })

  it('has no file before a write, and returns what was written, also nothing', async () => {
    assert.is(await place.storage.read(KEY), null)
    await place.storage.remove(KEY)
    for (const parts of [['id,name\r\n', '1,عائشہ\r\n', '2,😀\r\n'], []]) {
      await place.storage.write(KEY, pieces(...parts))
      const file = await place.storage.read(KEY)
      assert.ok(file)
      assert.is(await text(file.content), parts.join(''))
      assert.is(file.bytes, Buffer.byteLength(parts.join('')))
      await place.storage.remove(KEY)
      assert.is(await place.storage.read(KEY), null)
    }
  })

  it('stores a file of many parts', async () => {
    const line = `${'x'.repeat(1023)}\n`
    const size = 20 * 1024
    await place.storage.write(
      KEY,
      (async function* () {
        for (let at = 0; at < size; at += 256) yield line.repeat(256)
      })(),
    )
    const file = await place.storage.read(KEY)
    assert.ok(file)
    assert.is(file.bytes, size * 1024)
    assert.ok((await buffer(file.content)).equals(Buffer.from(line.repeat(size))))
    await place.storage.remove(KEY)
  })

  for (const megabytes of [0, 20]) {
    it(`stores nothing of a write that fails after ${megabytes} MB, and fails with its error`, async () => {
      const failing = (async function* () {
        for (let at = 0; at < megabytes; at += 1) yield 'y'.repeat(1024 * 1024)
        throw new RangeError('the lease is lost')
      })()
      assert.instance(await rejectionOf(place.storage.write(KEY, failing)), RangeError)
      assert.is(await place.storage.read(KEY), null)
    })
  }

  it('refuses a key that leaves the folder', async () => {
    for (const key of ['../a.csv', 'a/b.csv', '/a.csv', '', 'a.csv.part'])
      assert.match(await messageOf(place.storage.read(key)), /not a key of a file/, key)
  })

  it.run()
}

const settings = suite('settings of export storage')

settings('name a missing setting', () => {
  const given = { EXPORT_STORAGE: 's3', S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'k', S3_SECRET_ACCESS_KEY: 's' }
  assert.is(readConfig(given).S3_FORCE_PATH_STYLE, false)
  for (const name of ['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY']) {
    const isNamed = (error: unknown) => error instanceof SettingError && error.message.includes(name)
    assert.throws(() => readConfig({ ...given, [name]: '' }), isNamed, name)
  }
  assert.throws(() => readConfig({ ...given, S3_FORCE_PATH_STYLE: 'yes' }), /S3_FORCE_PATH_STYLE/)
  assert.throws(() => readConfig({ EXPORT_STORAGE: 'ftp' }), /EXPORT_STORAGE/)
})

settings.run()
