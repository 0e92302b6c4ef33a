import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openProcessorStub, type ProcessorStub } from '../../cli/test/processor-stub.ts'
import { SettingError } from '../platform/config.ts'
import { migrationState } from '../platform/database/migrator.ts'
import { type Service, startService } from '../service.ts'
import { testDialects } from './testkit/databases.ts'
import { type FixtureDatabase, openFixtureDatabase } from './testkit/fixture-databases.ts'
import { call } from './testkit/service-bed.ts'

type Settings = Record<string, string>

const METRICS_TOKEN = 'a-token-for-metrics'

/** Settings that commit 309daf1 took in production and this version refuses, and what to set instead. */
const REFUSED: { setting: string; former: string; now: string }[] = [
  { setting: 'TRUST_PROXY', former: 'true', now: '1' },
  { setting: 'PUBLIC_BASE_URL', former: 'http://offers.example.pk', now: 'https://offers.example.pk' },
  { setting: 'PUBLIC_BASE_URL', former: '', now: 'https://offers.example.pk' },
]

for (const dialect of testDialects()) {
  const it = suite<{ fixture: FixtureDatabase; stub: ProcessorStub }>(
    `an installation of 309daf1 in production on ${dialect}`,
  )

  it.before.each(async (world) => {
    world.stub = await openProcessorStub()
    world.fixture = await openFixtureDatabase(dialect, '309daf1')
  })
  it.after.each(async ({ fixture, stub }) => {
    await fixture.close()
    await stub.close()
  })

  const production = (fixture: FixtureDatabase, stub: ProcessorStub): Settings => ({
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: fixture.url,
    DATA_DIR: fixture.folder,
    APP_KEY: fixture.appKey,
    ...stub.settings,
    PUBLIC_BASE_URL: 'https://offers.example.pk',
    TRUST_PROXY: '127.0.0.1',
    METRICS_TOKEN,
    LOG_LEVEL: 'silent',
  })

  async function withService(
    environment: Settings,
    work: (url: string, service: Service) => Promise<void>,
  ): Promise<void> {
    const service = await startService({ environment })
    try {
      await work(service.url ?? '', service)
    } finally {
      await service.stop()
    }
  }

  const metrics = async (url: string, token?: string) =>
    (await call(url, 'GET', '/metrics', token ? { token } : {})).status

  it('migrates, starts and serves with its settings', async ({ fixture, stub }) => {
    const { pending } = await migrationState(fixture.database)
    await withService(production(fixture, stub), async (url, { migrated }) => {
      assert.equal(migrated, pending)
      assert.is((await call(url, 'GET', '/readyz')).status, 200)
      const body = { email: 'ayesha@fixture.example', password: fixture.password }
      const { status, body: login } = await call(url, 'POST', '/auth/login', { body })
      assert.is(status, 200)
      const links = await call(url, 'GET', '/affiliate-links', { token: login.token })
      assert.match(links.body.items[0].url, /^https:\/\/offers\.example\.pk\/go\//)
      assert.is(await metrics(url, METRICS_TOKEN), 200)
    })
    assert.equal((await migrationState(fixture.database)).pending, [])
  })

  it('starts with its roles in processes of their own', async ({ fixture, stub }) => {
    for (const ROLES of ['scheduler', 'worker', 'web']) {
      await withService({ ...production(fixture, stub), ROLES }, async (url) => {
        if (ROLES === 'web') assert.is((await call(url, 'GET', '/readyz')).status, 200)
      })
    }
  })

  it('starts without a METRICS_TOKEN, and then has no /metrics', async ({ fixture, stub }) => {
    const { METRICS_TOKEN: _unset, ...settings } = production(fixture, stub)
    await withService(settings, async (url) => {
      assert.is((await call(url, 'GET', '/readyz')).status, 200)
      assert.is(await metrics(url), 403)
    })
  })

  for (const { setting, former, now } of REFUSED) {
    it(`names ${setting} where ${former || 'nothing'} has to change, and starts with ${now}`, async ({
      fixture,
      stub,
    }) => {
      const settings = production(fixture, stub)
      const before = await migrationState(fixture.database)
      const refusal = await startService({ environment: { ...settings, [setting]: former } }).then(
        (service) => service.stop(),
        (error: unknown) => error,
      )
      assert.instance(refusal, SettingError)
      const { message } = refusal as SettingError
      assert.match(message, new RegExp(`^setting ${setting}: `))
      assert.not.match(message, /\n/)
      assert.equal(await migrationState(fixture.database), before)
      await withService({ ...settings, [setting]: now }, async (url) => {
        assert.is((await call(url, 'GET', '/readyz')).status, 200)
      })
    })
  }

  it('names PROCESSOR_URL where it is plain http to another host', async ({ fixture, stub }) => {
    const environment = { ...production(fixture, stub), PROCESSOR_URL: 'http://processor.example' }
    const refusal = await startService({ environment }).then(
      (service) => service.stop(),
      (error: unknown) => error,
    )
    assert.match(String(refusal), /setting PROCESSOR_URL: .*https/)
  })

  it.run()
}
