// long
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sealLedger } from '../../server/ledger/seals/seals.service.ts'
import { sealName, sealText, storeSeals } from '../../server/ledger/seals/stored-seals.service.ts'
import { sendMail } from '../../server/notifications/channels/mail/mail.service.ts'
import { readConfig } from '../../server/platform/config.ts'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { type Marketplace, openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { orderBody } from '../../server/test/testkit/orders.ts'
import { addUser } from '../../server/test/testkit/people.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { openServiceBed, type ServiceBed } from '../../server/test/testkit/service-bed.ts'
import { removeGuards } from '../../server/test/testkit/tamper.ts'
import { TESTBED_KEY } from '../../server/test/testkit/testbed.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import { PRODUCTION } from '../test/run-affiliate.ts'
import { runHere } from '../test/run-here.ts'
import { type Finding, type Found, findingsIn } from './finding.ts'
import { examineRuntime, judgeSpace } from './machine.ts'
import { examineMail } from './mail.ts'
import { examineAddress, examineMetrics, examineProxies } from './outside.ts'
import { examineSecrets } from './secrets.ts'

const OTHER_KEY = Buffer.alloc(32, 1).toString('base64')

for (const dialect of proofDialects()) {
  const it = suite(`the doctor on ${dialect}`)
  let bed: ServiceBed
  let settings: Record<string, string>
  it.before(async () => {
    bed = await openServiceBed(dialect)
    const { url, folder } = bed.testDatabase
    settings = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY: '', PUBLIC_BASE_URL: bed.url }
  })
  it.after(() => bed.close())

  const examine = async (more: Record<string, string> = {}) => {
    const { code, stdout } = await runHere(['doctor', '--json'], { ...settings, ...more })
    const { checks, ok } = JSON.parse(stdout) as { checks: Finding[]; ok: boolean }
    const of = (name: string, state: Finding['state']) =>
      checks.filter((one) => one.name === name && one.state === state)
    return { code, ok, checks, of }
  }

  it('finds no problem at a service that runs', async () => {
    const { code, ok, of, checks } = await examine()
    assert.equal([code, ok], [0, true], JSON.stringify(checks))
    const own = ['runtime', 'settings', 'database', 'migrations', 'disk', 'clock', 'secrets']
    for (const name of [...own, 'processor', 'service', 'worker', 'notifications']) {
      assert.ok(of(name, 'ok').length > 0, `${name}: ${JSON.stringify(checks)}`)
    }
    const where = of('webhooks', 'info').map(({ detail }) => detail)
    assert.ok(where.some((detail) => detail.includes(`${bed.url}/webhooks/store-sales`)))
  })

  it('names what is wrong, and how to fix it', async () => {
    const nowhere = 'http://127.0.0.1:9'
    const cases: [Record<string, string>, string, Finding['state'], RegExp][] = [
      [{ APP_KEY: OTHER_KEY }, 'secrets', 'fail', /another one than this database/],
      [{ PROCESSOR_URL: nowhere }, 'processor', 'warn', /sandbox does not answer/],
      [{ PUBLIC_BASE_URL: nowhere }, 'service', 'warn', /does not answer/],
      [{ PAYOUT_THRESHOLD: '1.005' }, 'settings', 'fail', /setting PAYOUT_THRESHOLD/],
    ]
    for (const [more, name, state, detail] of cases) {
      const { of, code, checks } = await examine(more)
      const [finding] = of(name, state)
      assert.match(finding?.detail ?? JSON.stringify(checks), detail)
      assert.ok(finding?.mend)
      assert.is(code, state === 'fail' ? 1 : 0)
    }
  })

  it('says where mail goes, and warns where it goes nowhere or does not arrive', async () => {
    const { database } = bed.testDatabase
    const mail = async (environment: Record<string, string>) => {
      const { state, detail } = await examineMail(readConfig(environment), database)
      return `${state}: ${detail}`
    }
    const smtp = { SMTP_URL: 'smtp://u:secret@mail.example', MAIL_FROM: 'a@b.pk' }
    assert.match(await mail({}), /^info: .*DATA_DIR\/mail/)
    assert.match(await mail(PRODUCTION), /^warn: no mail is sent/)
    assert.match(await mail({ ...PRODUCTION, SMTP_URL: 'off' }), /^info: no mail is sent/)
    assert.is(await mail(smtp), 'ok: goes to mail.example:587')
    const { userId } = await addUser(bed.service.app.platform, 'creator')
    const { platform } = bed.service.app
    // In one transaction, before the worker sees it.
    await database.transaction(async (tx) => {
      const facts = { at: Date.now(), by: 'owner' as const }
      await sendMail(platform, tx, { userId, kind: 'password_changed', facts })
      await tx.updateTable('mails').set({ state: 'failed', finished_at: Date.now() }).execute()
    })
    assert.match(await mail(smtp), /^warn: mails failed within 24 hours: 1/)
  })

  it('counts the admins without a second factor in production', async () => {
    const { platform } = bed.service.app
    const { database } = bed.testDatabase
    const found = async (NODE_ENV: 'production' | 'development') =>
      findingsIn(await examineSecrets({ ...platform.config, NODE_ENV }, {}, database))
        .map(({ detail }) => detail)
        .filter((detail) => detail.includes('second factor'))
    assert.equal(await found('production'), [])
    const admin = await addUser(platform, 'admin')
    await addUser(platform, 'creator')
    assert.equal(await found('production'), ['1 admin has no second factor'])
    assert.equal(await found('development'), [])
    const { secret } = await startTotp(platform, admin.userId)
    assert.equal(await found('production'), ['1 admin has no second factor'], 'started, and not confirmed')
    await confirmTotp(platform, admin.userId, codeOf(secret, platform.clock), 'operator')
    assert.equal(await found('production'), [])
  })

  it('warns of seals that SEAL_STORAGE lacks or holds otherwise after an hour', async () => {
    const { testDatabase } = bed
    const SEAL_STORAGE = mkdtempSync(join(tmpdir(), 'affiliate-doctor-seals-'))
    try {
      const states = async () =>
        (await examine({ SEAL_STORAGE })).checks.filter(({ name }) => name === 'seals')
      assertNone((await examine()).checks, ({ name }) => name === 'seals', 'not set')
      const addSeal = async (position: number, ageMinutes: number) => {
        const sealed_at = Date.now() - ageMinutes * 60_000
        const digest = `01234567.${'0'.repeat(63)}${position}`
        const seal = { position, sealed_at, digest, retires: null, row_digest: '' }
        await testDatabase.database.transaction((tx) => tx.insertInto('ledger_seals').values(seal).execute())
        return { name: sealName(position), text: sealText({ position, sealedAt: sealed_at, digest }) }
      }
      const old = await addSeal(1, 61)
      await addSeal(2, 59)
      const [missing, ...more] = await states()
      assert.equal([missing?.state, more], ['warn', []])
      assert.match(missing?.detail ?? '', /^seal 1 of .* is not in SEAL_STORAGE after more than an hour$/)
      assert.match(missing?.mend ?? '', /role scheduler/)
      const keep = (text: string) => writeFileSync(join(SEAL_STORAGE, old.name), text)
      keep(old.text)
      const held = { name: 'seals', state: 'ok', detail: 'SEAL_STORAGE holds seal 1', mend: null }
      assert.equal(await states(), [held])
      keep(old.text.replace('0000', '1111'))
      const [other] = await states()
      assert.is(other?.state, 'warn')
      assert.match(other?.mend ?? '', /ledger verify --against storage/)
    } finally {
      rmSync(SEAL_STORAGE, { recursive: true })
    }
  })

  if (dialect === 'sqlite')
    it('names a misspelt setting in .env, a missing database and a key that others can read', async () => {
      const { folder, url } = bed.testDatabase
      writeFileSync(join(folder, '.env'), 'PAYOUT_TRESHOLD=5\nUNRELATED_THING=1\n')
      chmodSync(join(folder, 'app.key'), 0o644)
      const doctor = (DATABASE_URL: string) =>
        runHere(['doctor'], { DATABASE_URL, DATA_DIR: folder, APP_KEY: '' }, { folder })
      const [run, missing] = [await doctor(url), await doctor('sqlite:./no.db')]
      assert.is(run.code, 0, run.stdout)
      const misspelt =
        /! settings +\.env sets PAYOUT_TRESHOLD, which nothing reads\n +→ Did you mean PAYOUT_THRESHOLD\?/
      assert.match(run.stdout, misspelt)
      assert.not.match(run.stdout, /UNRELATED/)
      assert.match(run.stdout, /! secrets .*app\.key is readable to others \(mode 644\)\n +→ chmod 600/)
      assert.is(missing.code, 1)
      const none = /✗ database +There is no database at .*no\.db \(sqlite:\.\/no\.db in the folder /
      assert.match(missing.stdout, none)
      assert.match(missing.stderr, /^affiliate: The doctor found database to be fixed\.\n$/)
    })

  it.run()

  const after = suite<{ market: Marketplace; folder: string }>(`the doctor after a failover on ${dialect}`)
  after.before.each(async (context) => {
    context.market = await openMarketplace(dialect)
    context.folder = mkdtempSync(join(tmpdir(), 'affiliate-doctor-failover-'))
  })
  after.after.each(async ({ market, folder }) => {
    await market.close()
    rmSync(folder, { recursive: true })
  })

  /** The findings, a line each. */
  const examineAfter = async (market: Marketplace, storage: string | null) => {
    const { url, folder } = market.bed.testDatabase
    const environment = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY: TESTBED_KEY.toString('base64') }
    const { code, stdout } = await runHere(['doctor', '--after-failover', '--json'], {
      ...environment,
      ...(storage !== null && { SEAL_STORAGE: storage }),
    })
    const { checks } = JSON.parse(stdout) as { checks: Finding[] }
    const found = checks.filter(({ name }) => name === 'failover')
    return { code, found: found.map(({ state, detail, mend }) => `${state}: ${detail} → ${mend}`).join('\n') }
  }
  /** Sells, seals, and keeps the seal in `folder`, as the schedule does. */
  const sellAndKeep = async (market: Marketplace, folder: string) => {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 400_000)
    await market.drainUntilIdle()
    await sealLedger(market.platform)
    const { config } = market.platform
    await storeSeals({ ...market.platform, config: { ...config, SEAL_STORAGE: folder } })
    return shop
  }

  after('says from when on stores must be compared, and with which command', async ({ market, folder }) => {
    const shop = await sellAndKeep(market, folder)
    const { found } = await examineAfter(market, folder)
    for (const said of [
      /^ok: seal 1 of 2026-11-01T07:00:00.000Z, the newest in SEAL_STORAGE, is in this/m,
      /^warn: the cluster may have lost what came after 2026-11-01T07:00:00.000Z/m,
      /from 2026-10-31 on and run "affiliate stores compare DOMAIN orders_export.csv"/,
      `s${shop.merchantId}.myshopify.com`,
      /^ok: no order since then names a click/m,
      /affiliate billing reconcile/,
      ...(dialect === 'sqlite' ? [] : [/^warn: commits wait for no standby \(synchronous_standby_names/m]),
    ])
      assert.match(found, said)
    // An order that names a click which the new primary does not have.
    const [createdAt, click] = [market.clock.now(), market.platform.ids.next()]
    await market.deliver(shop, orderBody({ price: 1000, createdAt, click }))
    await market.drainUntilIdle()
    const again = await examineAfter(market, folder)
    assert.match(again.found, /^warn: 1 order since then names a click that/m)
  })

  after('fails when a kept seal is not in the database', async ({ market, folder }) => {
    await sellAndKeep(market, folder)
    const { database } = market.bed.testDatabase
    await removeGuards(database)
    for (const table of ['ledger_seal_heads', 'ledger_seals'] as const)
      await database.writer.deleteFrom(table).execute()
    const { code, found } = await examineAfter(market, folder)
    assert.is(code, 1)
    assert.match(
      found,
      /^fail: acknowledged events were lost: seal 1: the seal storage holds it.*the storage ends with seal 1 → Stop the service and keep the data folder/m,
    )
    assert.match(found, /^warn: the cluster may have lost every order of the days/m)
  })

  after('says what cannot be known without a readable SEAL_STORAGE', async ({ market, folder }) => {
    await sellAndKeep(market, folder)
    const { found } = await examineAfter(market, null)
    assert.match(found, /^warn: SEAL_STORAGE is not set: .* number 1 of 2026-11-01T/m)
    assert.match(found, '"affiliate ledger verify --against DIGEST"')
    writeFileSync(join(folder, 'a-file'), '')
    const unreadable = await examineAfter(market, join(folder, 'a-file', 'seals'))
    assert.is(unreadable.code, 1)
    assert.match(unreadable.found, /^fail: the seals in SEAL_STORAGE cannot be compared/m)
  })

  after.run()
}

const it = suite('what the doctor looks at')

it('the runtime, the disk, the public address, metrics and proxies', () => {
  const states = (found: Found) => findingsIn(found).map(({ state }) => state)
  const runtimes = ['20.1.0', '22.19.0', '24.0.0'].map((version) => examineRuntime(version))
  assert.equal(states(runtimes), ['fail', 'ok', 'ok'])
  const disks = [5e9, 5e8, 5e7].map((free) => judgeSpace('x', free))
  assert.equal(states(disks), ['ok', 'warn', 'fail'])
  for (const [url, more, state] of [
    ['https://shop.example', {}, 'ok'],
    [undefined, {}, 'warn'],
    ['http://shop.example', {}, 'warn'],
    ['https://shop.example', PRODUCTION, 'ok'],
    ['http://127.0.0.1:3000', PRODUCTION, 'fail'],
  ] as const) {
    const config = readConfig({ ...(url && { PUBLIC_BASE_URL: url }), ...more })
    assert.is(examineAddress(config, url ?? 'http://127.0.0.1:3000').state, state, `${url}`)
  }
  for (const [settings, expected] of [
    [{}, []],
    [PRODUCTION, ['warn']],
    [{ ...PRODUCTION, METRICS_TOKEN: 'a-token-for-prometheus' }, ['ok']],
    [{ ...PRODUCTION, ROLES: 'worker' }, []],
  ] as const)
    assert.equal(states(examineMetrics(readConfig(settings))), expected)
  for (const [TRUST_PROXY, expected] of [
    ['', []],
    ['loopback', []],
    ['2', ['info']],
    ['true', ['warn']],
  ] as const)
    assert.equal(states(examineProxies(readConfig({ TRUST_PROXY }))), expected, TRUST_PROXY)
})

it.run()
