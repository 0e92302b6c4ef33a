// database: none
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type App, openApp } from './app.ts'
import { readConfig, SettingError } from './platform/config.ts'
import { readAppKeys, readSandboxAccess, writeSandboxAccess } from './platform/crypto/app-keys.ts'
import { createAppKeys } from './platform/crypto/key-ring.ts'
import { createVault } from './platform/crypto/vault.ts'
import { assertMapped, assertNone, pluck } from './test/testkit/pluck.ts'
import { raceProcesses } from './test/testkit/racing-processes.ts'

interface Context {
  folder: string
  environment: Record<string, string>
}

const KEY = Buffer.alloc(32, 9)
const BINDING = { purpose: 'test', row: 'r', owner: 'o', facts: [] }
const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`
const HTTP = {
  PROCESSOR: 'http',
  PROCESSOR_URL: 'http://127.0.0.1:9',
  PROCESSOR_API_KEY: 'key',
  PROCESSOR_WEBHOOK_SECRETS: SECRET,
}

const it = suite<Context>('the app')

it.before.each((context) => {
  context.folder = join(mkdtempSync(join(tmpdir(), 'affiliate-app-')), 'data')
  context.environment = {
    DATABASE_URL: `sqlite:${join(context.folder, 'affiliate.db')}`,
    LOG_LEVEL: 'silent',
  }
})

it.after.each(({ folder }) => {
  rmSync(join(folder, '..'), { recursive: true, force: true })
})

async function withApp<T>(environment: Record<string, string>, work: (app: App) => T): Promise<T> {
  const app = await openApp({ create: true, environment })
  try {
    return work(app)
  } finally {
    await app.close()
  }
}

/** The one line with which the start is refused. */
async function refusalOf(environment: Record<string, string>, create = true): Promise<string> {
  const outcome = await openApp({ create, environment }).catch((error: unknown) => error)
  assert.instance(outcome, SettingError)
  assert.not.match((outcome as Error).message, '\n')
  return (outcome as Error).message
}

it('creates its keys once, owner-readable, and opens with them again', async ({ folder, environment }) => {
  const sealed = await withApp(environment, ({ platform }) => platform.vault.seal('secret', BINDING))
  const files = ['app.key', 'sandbox.json'].map((name) => join(folder, name))
  const made = files.map((file) => readFileSync(file, 'utf8'))
  for (const file of files) assert.is(statSync(file).mode & 0o777, 0o600, file)
  assertNone(readdirSync(folder), (name) => name.endsWith('.tmp'))
  assert.is(await withApp(environment, ({ platform }) => platform.vault.open(sealed, BINDING)), 'secret')
  assertMapped(files, (file) => readFileSync(file, 'utf8'), made)
})

it('makes nothing when it may not', async ({ folder, environment }) => {
  assert.match(await refusalOf(environment, false), /^setting APP_KEY: .*app\.key/)
  assert.not.ok(existsSync(folder))
})

it('keeps keys beside the SQLite file, or where DATA_DIR says', async ({ folder, environment }) => {
  const elsewhere = join(folder, '..', 'keys')
  await withApp({ ...environment, DATA_DIR: elsewhere }, () => {})
  assert.equal(readdirSync(elsewhere).sort(), ['app.key', 'sandbox.json'])
  const config = readConfig({ DATABASE_URL: `sqlite://${folder}/a.db` })
  readAppKeys(config, { create: true })
  assert.ok(existsSync(join(folder, 'app.key')))
})

it('takes APP_KEY before any file, and then makes none', async ({ folder, environment }) => {
  const given = { ...environment, APP_KEY: KEY.toString('base64') }
  const sealed = await withApp(given, ({ platform }) => platform.vault.seal('secret', BINDING))
  assert.is(createVault(createAppKeys(KEY)).open(sealed, BINDING), 'secret')
  assert.not.ok(existsSync(join(folder, 'app.key')))
})

it('refuses a current key listed as a former one, opens what former ones sealed', async ({ environment }) => {
  const former = randomBytes(32)
  const sealed = createVault(createAppKeys(former)).seal('secret', BINDING)
  const given = { ...environment, APP_KEY: KEY.toString('base64') }
  const listed = (...keys: Buffer[]) => keys.map((key) => key.toString('base64')).join(', ')
  await withApp({ ...given, APP_KEYS_FORMER: listed(former) }, ({ platform }) => {
    assert.is(platform.vault.open(sealed, BINDING), 'secret')
    assert.is(createVault(createAppKeys(KEY)).open(platform.vault.seal('new', BINDING), BINDING), 'new')
  })
  const refusal = await refusalOf({ ...given, APP_KEYS_FORMER: listed(former, KEY) })
  assert.match(refusal, /^setting APP_KEYS_FORMER: contains the current APP_KEY/)
})

it('refuses key files that hold something else', async ({ folder, environment }) => {
  await withApp(environment, () => {})
  const sandbox = join(folder, 'sandbox.json')
  for (const content of ['', '{', '[]', '{"api_key":"x"}']) {
    writeFileSync(sandbox, content)
    assert.match(await refusalOf(environment), /^setting PROCESSOR: .*sandbox\.json/)
  }
  rmSync(sandbox)
  for (const content of ['', 'short', randomBytes(31).toString('base64')]) {
    writeFileSync(join(folder, 'app.key'), content)
    assert.match(await refusalOf(environment), /^setting APP_KEY: .*app\.key/)
  }
})

it('agrees with other processes that start at the same moment on one key', async ({ environment }) => {
  const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const keys = await raceProcesses(3, {
    prepare: `
      const { readAppKeys, readSandboxAccess } = await import(${module('./platform/crypto/app-keys.ts')})
      const { readConfig } = await import(${module('./platform/config.ts')})
      const config = readConfig(${JSON.stringify(environment)})`,
    run: `
      const key = readAppKeys(config, { create: true }).current.id
      console.log(key, readSandboxAccess(config, { create: true }).api_key)`,
  })
  assert.match(keys[0] ?? '', /^[0-9a-f]{8} \S{32}\n$/)
  assert.is(new Set(keys).size, 1)
})

it('gives the sandbox the keys that are set', ({ environment }) => {
  const given = { PROCESSOR_API_KEY: 'mine', PROCESSOR_WEBHOOK_SECRETS: `${SECRET},old` }
  const config = readConfig({ ...environment, ...given })
  assert.is(readSandboxAccess(config, { create: false }), null)
  const access = readSandboxAccess(config, { create: true })
  assert.equal(access, { api_key: 'mine', webhook_secret: SECRET, url: null })
  const written = { api_key: 'a', webhook_secret: 'b', url: 'http://127.0.0.1:1' }
  writeSandboxAccess(config, written)
  assert.equal(readSandboxAccess(readConfig(environment), { create: false }), written)
})

it('verifies with the sandbox secret unless secrets are set', async ({ folder, environment }) => {
  const own = await withApp(environment, (app) => app.processorSignature.secrets)
  assert.equal(own, [JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8')).webhook_secret])
  const real = await withApp({ ...environment, ...HTTP }, (app) => app)
  assert.equal([real.processorSignature.secrets, real.sandbox], [[SECRET], null])
})

const HMAC = { ...HTTP, PROCESSOR_SIGNATURE: 'hmac' }
const WRONG: [string, Record<string, string>][] = [
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: '{' }],
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: '[]' }],
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: 'null' }],
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: '{"rules":[]}' }],
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: '{"rules":[{"types":["x"],"meaning":"refund"}]}' }],
  ['PROCESSOR_EVENTS', { PROCESSOR_EVENTS: '{"type":"x"}' }],
  ['PROCESSOR_SIGNATURE_HMAC', HMAC],
  ['PROCESSOR_SIGNATURE_HMAC', { ...HMAC, PROCESSOR_SIGNATURE_HMAC: 'sha256' }],
  [
    'PROCESSOR_SIGNATURE_HMAC',
    { ...HMAC, PROCESSOR_SIGNATURE_HMAC: '{"signature_header":"x","template":"{id}"}' },
  ],
  ['PROCESSOR_WEBHOOK_SECRETS', { ...HTTP, PROCESSOR_WEBHOOK_SECRETS: 'plain text' }],
  ['PROCESSOR_WEBHOOK_SECRETS', { ...HTTP, PROCESSOR_WEBHOOK_SECRETS: `${SECRET},plain text` }],
]

it('refuses wrong settings with one line that names them and shows no secret', async ({ environment }) => {
  for (const [name, settings] of WRONG) {
    const line = await refusalOf({ ...environment, ...settings })
    assert.match(line, new RegExp(`^setting ${name}: [^:\\s]`), JSON.stringify(settings))
    assert.not.match(line, 'plain text')
  }
})

it('reads the mapping of events and the hmac scheme from their settings', async ({ environment }) => {
  const settings = {
    ...{ ...environment, ...HMAC, PROCESSOR_WEBHOOK_SECRETS: 'whatever' },
    PROCESSOR_SIGNATURE_HMAC: '{"signature_header":"X-Signature"}',
    PROCESSOR_EVENTS: '{"type_field":"event","rules":[{"types":["paid"],"meaning":"payout_confirmed"}]}',
  }
  await withApp(settings, (app) => {
    assert.is(app.eventRules.type_field, 'event')
    assert.equal(pluck(app.eventRules.rules, 'meaning'), ['payout_confirmed'])
    assert.equal(app.processorSignature.secrets, ['whatever'])
  })
})

it('links to PUBLIC_BASE_URL, else to its address, else to what the server says', async ({ environment }) => {
  const base = (more: Record<string, string>) =>
    withApp({ ...environment, ...more }, ({ platform }) => platform.publicBaseUrl)
  assert.is(await base({}), 'http://127.0.0.1:3000')
  assert.is(await base({ HOST: '::1', PORT: '81' }), 'http://[::1]:81')
  assert.is(await base({ PUBLIC_BASE_URL: 'https://aff.example/' }), 'https://aff.example')
  const app = await openApp({ create: true, environment, ownUrl: () => 'http://127.0.0.1:4567' })
  assert.is(app.platform.publicBaseUrl, 'http://127.0.0.1:4567')
  await app.close()
})

it('tells with one line that a folder cannot be made', async ({ folder, environment }) => {
  writeFileSync(join(folder, '..', 'file'), '')
  const inside = join(folder, '..', 'file', 'data')
  assert.match(await refusalOf({ ...environment, DATA_DIR: inside }), /^setting DATA_DIR: /)
  const keyed = { DATABASE_URL: `sqlite:${inside}/a.db`, DATA_DIR: folder, LOG_LEVEL: 'silent' }
  assert.match(await refusalOf(keyed), /^setting DATABASE_URL: /)
})

it.run()
