// database: none
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SettingError } from './platform/config.ts'
import { startService } from './service.ts'

const it = suite<{ above: string; folder: string; environment: Record<string, string> }>('the data folder')

it.before((world) => {
  world.above = mkdtempSync(join(tmpdir(), 'affiliate-service-'))
  world.folder = join(world.above, 'made', 'data')
  world.environment = {
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: `sqlite:${join(world.folder, 'affiliate.db')}`,
    SCHEDULE_BILLING: 'off',
    SCHEDULE_PAYOUTS: 'off',
    LOG_LEVEL: 'silent',
  }
})
it.after(({ above }) => rmSync(above, { recursive: true, force: true }))

it('is readable only by the owner, and belongs to one running sandbox', async ({ folder, environment }) => {
  const before = process.umask(0o022)
  const first = await startService({ environment }).finally(() => process.umask(before))
  const access = () => readFileSync(join(folder, 'sandbox.json'), 'utf8')
  try {
    const modes = Object.fromEntries(readdirSync(folder).map((name) => [name, modeOf(join(folder, name))]))
    assert.equal([modeOf(folder), modeOf(join(folder, '..'))], [0o700, 0o700])
    const names = ['affiliate.db', 'affiliate.db-wal', 'app.key', 'sandbox.db', 'sandbox.json']
    for (const name of names) assert.ok(name in modes, name)
    for (const [name, mode] of Object.entries(modes)) assert.is(mode, 0o600, name)

    const own = access()
    assert.is(JSON.parse(own).url, first.sandboxUrl)
    const refusal = await startService({ environment }).then(
      (service) => service.stop(),
      (error: unknown) => error,
    )
    assert.instance(refusal, SettingError)
    assert.match((refusal as Error).message, /^setting DATA_DIR: .*another process runs.*PROCESSOR_URL/)
    assert.is(access(), own)
    const beside = await startService({
      environment: { ...environment, PROCESSOR_URL: first.sandboxUrl ?? '' },
    })
    await beside.stop()
    assert.is(access(), own)
  } finally {
    await first.stop()
  }
  const next = await startService({ environment })
  assert.is(JSON.parse(access()).url, next.sandboxUrl)
  await next.stop()
})

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

it.run()
