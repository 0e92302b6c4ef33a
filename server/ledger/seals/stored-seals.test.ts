import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { startScheduler } from '../../jobs/scheduler.ts'
import { readConfig, SettingError } from '../../platform/config.ts'
import type { Platform } from '../../platform/platform.ts'
import { type FileStorage, readText } from '../../platform/storage/storage.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { type Marketplace, openMarketplace } from '../../test/testkit/marketplace.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { rowOf } from '../../test/testkit/rows.ts'
import { openS3Server } from '../../test/testkit/s3-server.ts'
import { removeGuards } from '../../test/testkit/tamper.ts'
import { sealLedger } from './seals.service.ts'
import {
  checkSealStorage,
  compareWithStorage,
  openSealStorage,
  SealConflict,
  sealName,
  sealText,
  storeSeals,
} from './stored-seals.service.ts'

const S3_KEYS = { S3_ACCESS_KEY_ID: 'k', S3_SECRET_ACCESS_KEY: 's' }

interface Place {
  settings: Record<string, string>
  close(): Promise<void>
}

const PLACES: Record<string, () => Promise<Place>> = {
  async 'a folder'() {
    const folder = mkdtempSync(join(tmpdir(), 'affiliate-seals-'))
    return {
      settings: { SEAL_STORAGE: join(folder, 'kept', 'seals') },
      close: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
  async 'a bucket'() {
    const { settings, close } = await openS3Server('seals-of-test')
    return { settings: { SEAL_STORAGE: 's3://seals-of-test/market/one', ...settings }, close }
  },
}

interface Context {
  market: Marketplace
  platform: Platform
  place: Place
  storage: FileStorage
  sell(): Promise<unknown>
  /** Sells something and seals it. */
  seal(): Promise<void>
}

for (const dialect of proofDialects()) {
  for (const [name, open] of Object.entries(PLACES)) {
    const it = suite<Context>(`seals of ${dialect} stored in ${name}`)
    it.before.each(async (context) => {
      context.place = await open()
      context.market = await openMarketplace(dialect, context.place.settings)
      context.platform = context.market.platform
      context.storage = (await openSealStorage(context.platform.config)) as FileStorage
      const { shop, link } = await context.market.addTrade()
      context.sell = () => context.market.sell(shop, link, 400_000)
      context.seal = async () => {
        await context.sell()
        await sealLedger(context.platform)
      }
    })
    it.after.each(async ({ market, place, storage }) => {
      storage?.close()
      await market?.close()
      await place?.close()
    })

    const breachesOf = async ({ platform, storage }: Context) =>
      (await compareWithStorage(platform.database.reader, storage)).breaches.map(
        ({ subject, detail }) => `${subject}: ${detail}`,
      )

    it('are stored by the scheduler as soon as one is made', async ({ market, platform, storage, sell }) => {
      await sell()
      const scheduler = startScheduler(platform, market.processor)
      await eventually(() => readText(storage, sealName(1)))
      await scheduler.stop()
    })

    it('are all there, also those from before it was set, and each once, also with two processes at once', async (context) => {
      const { platform, storage, seal } = context
      assert.is(await storeSeals(platform), 0)
      for (const _ of [1, 2]) await seal()
      assert.is((await compareWithStorage(platform.database.reader, storage)).missing?.position, 1)
      assert.is(await storeSeals(platform), 2)
      await seal()
      assert.is(await storeSeals(platform), 1)
      assert.is(await storeSeals(platform), 0)
      const last = await rowOf(platform, 'ledger_seals', { position: 3 }, 'position')
      assert.is(await readText(storage, sealName(3)), sealText({ ...last, sealedAt: last.sealed_at }))
      for (const _ of [4, 5, 6]) await seal()
      await Promise.all([storeSeals(platform), storeSeals(platform)])
      const compared = await compareWithStorage(platform.database.reader, storage)
      assert.equal(compared, { rows: 6, breaches: [], missing: null })
    })

    it('show that the database was rolled back, and are not replaced by other ones', async (context) => {
      const { market, platform, seal, storage } = context
      for (const _ of [1, 2]) await seal()
      await storeSeals(platform)
      const { database } = market.bed.testDatabase
      await removeGuards(database)
      for (const table of ['ledger_seal_heads', 'ledger_seals'] as const)
        await database.writer.deleteFrom(table).where('position', '=', 2).execute()
      assert.equal(await breachesOf(context), [
        'seal 2: the seal storage holds it, and the database ends with seal 1: the database was rolled back, or seals were removed',
      ])
      market.clock.pass(1000)
      const before = await readText(storage, sealName(2))
      await seal()
      assert.equal(await breachesOf(context), [
        'seal 2: the seal storage holds another one: the journal was rewritten, or another database uses that storage',
      ])
      const error = await storeSeals(platform).catch((thrown) => thrown)
      assert.instance(error, SealConflict)
      assert.is(await readText(storage, sealName(2)), before)
    })

    it.run()
  }
}

const folders = suite<{ folder: string }>('a folder of seals')
folders.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-seals-'))
})
folders.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }))

folders('creates a file once, and completes one that a crash cut short', async ({ folder }) => {
  const storage = (await openSealStorage(readConfig({ SEAL_STORAGE: folder }))) as FileStorage
  assert.is(await storage.create('one.json', 'the text\n'), true)
  assert.is(await storage.create('one.json', 'the text\n'), true)
  assert.is(await storage.create('one.json', 'other\n'), false)
  writeFileSync(join(folder, 'two.json'), 'the')
  assert.is(await storage.create('two.json', 'the text\n'), true)
  assert.is(readFileSync(join(folder, 'two.json'), 'utf8'), 'the text\n')
  assert.equal(readdirSync(folder).sort(), ['one.json', 'two.json'])
})

folders('is refused inside DATA_DIR, also through a link or before it exists', ({ folder }) => {
  const data = join(folder, 'data')
  mkdirSync(join(data, 'inner'), { recursive: true })
  symlinkSync(join(data, 'inner'), join(folder, 'link'))
  const isRefusal = (error: unknown) =>
    error instanceof SettingError && /SEAL_STORAGE: is inside DATA_DIR/.test(error.message)
  const link = join(folder, 'link')
  for (const place of [data, join(data, 'seals', 'deep'), link, join(link, 'new')]) {
    const config = readConfig({ DATA_DIR: data, SEAL_STORAGE: place })
    assert.throws(() => checkSealStorage(config), isRefusal)
  }
  for (const place of [join(folder, 'data-of-seals'), 's3://bucket/data'])
    checkSealStorage(readConfig({ DATA_DIR: data, SEAL_STORAGE: place, ...S3_KEYS }))
})

folders.run()

test('a bucket says whether it has object lock with a default retention', async () => {
  const locked = (rule: string) =>
    `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>${rule}</ObjectLockConfiguration>`
  const refusal = (code: string) => `<Error><Code>${code}</Code><Message>no</Message></Error>`
  const retention =
    '<Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>365</Days></DefaultRetention></Rule>'
  const answers: [number, string, boolean | null][] = [
    [200, locked(retention), true],
    [200, locked(''), false],
    [404, refusal('ObjectLockConfigurationNotFoundError'), false],
    [403, refusal('AccessDenied'), null],
  ]
  let answer: [number, string] = [500, '']
  const asked: string[] = []
  const server = createServer((request, reply) => {
    asked.push(`${request.method} ${request.url}`)
    reply.writeHead(answer[0], { 'content-type': 'application/xml' }).end(answer[1])
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const config = readConfig({
    ...{ SEAL_STORAGE: 's3://seals-of-test/one', S3_FORCE_PATH_STYLE: 'true', ...S3_KEYS },
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
  const storage = (await openSealStorage(config)) as FileStorage
  try {
    for (const [status, body, expected] of answers) {
      answer = [status, body]
      assert.is(await storage.isWriteOnce(), expected, body)
    }
    assert.equal([...new Set(asked)], ['GET /seals-of-test/?object-lock='])
  } finally {
    storage.close()
    server.close()
  }
})

test('the setting names a bucket with its keys, or a folder', () => {
  for (const [place, message] of [
    ['ftp://x/y', /SEAL_STORAGE: must be s3:\/\/BUCKET\/PREFIX or a folder/],
    ['s3://bucket', /S3_ACCESS_KEY_ID: must be set when SEAL_STORAGE/],
  ] as const)
    assert.throws(() => readConfig({ SEAL_STORAGE: place }), message)
})

test.run()
