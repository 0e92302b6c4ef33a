// database: none
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readConfig, SETTING_NAMES, SettingError } from '../../server/platform/config.ts'
import { assertNone, pluck } from '../../server/test/testkit/pluck.ts'
import { openWebTestbed } from '../../server/test/testkit/web.ts'
import { filledExample, fillIn } from './filled-example.ts'

const textOf = (name: string) => readFileSync(fileURLToPath(new URL(name, import.meta.url)), 'utf8')
const it = suite('the deployment pack')

it('has an example of settings that production accepts once they are filled in', () => {
  const example = textOf('affiliate.env.example')
  const filled = filledExample()
  assertNone(Object.keys(filled), (name) => !SETTING_NAMES.includes(name))
  const config = readConfig(filled)
  assert.equal([config.NODE_ENV, config.PROCESSOR, config.TRUST_PROXY], ['production', 'http', 'loopback'])
  // Values that were left as they are must not be taken for hosts, passwords and keys; all are named at once.
  const left = parseEnv(example)
  const names = Object.keys(left).filter((name) => left[name]?.includes('replace'))
  const faultsOf = (settings: NodeJS.ProcessEnv): SettingError['faults'] => {
    try {
      readConfig(settings)
      return []
    } catch (error) {
      assert.instance(error, SettingError)
      return (error as SettingError).faults
    }
  }
  const faults = faultsOf(left)
  assert.equal(pluck(faults, 'name').sort(), names.sort())
  assertNone(faults, ({ problem }) => !problem.includes('placeholder'))
  assert.ok(names.includes('SMTP_URL') && names.includes('MAIL_FROM'))
  const processor = ['PROCESSOR', 'PROCESSOR_URL', 'PROCESSOR_API_KEY', 'PROCESSOR_WEBHOOK_SECRETS']
  for (const name of ['APP_KEY', ...processor])
    assert.ok(pluck(faultsOf({ ...filled, [name]: '' }), 'name').includes(name), name)
  const commented = parseEnv(fillIn(example.replaceAll(/^#(?=[A-Z0-9_]+=)/gm, '')))
  assertNone(Object.keys(commented), (name) => !SETTING_NAMES.includes(name))
  assert.ok(readConfig({ ...commented, ...filled }).SEAL_STORAGE)
})

it('names only metrics that exist, and shows all of the service', async () => {
  const bed = await openWebTestbed('sqlite')
  const answer = await fetch(`${bed.base}/metrics`).finally(() => bed.close())
  const metrics = `${await answer.text()}\n${textOf('backup.sh')}`
  const existing = new Set<string>()
  for (const [, name = '', type] of metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    for (const end of type === 'histogram' ? ['_bucket', '_count', '_sum'] : ['']) existing.add(name + end)
  }
  const namesIn = (text: string) =>
    new Set(text.match(/\b(?:affiliate|process|nodejs)_[a-z0-9_]+(?=[{\s)[",])/g) ?? [])
  const dashboard = textOf('dashboard.json')
  const used = new Set([...namesIn(textOf('alerts.yml')), ...namesIn(dashboard)])
  assert.ok(used.size > 20)
  assertNone([...used], (name) => !existing.has(name))
  const shown = namesIn(dashboard)
  const own = [...existing].filter((name) => name.startsWith('affiliate_') && !/_(bytes|sum)$/.test(name))
  assertNone(own, (name) => !shown.has(name))
})

it('has a test that every alert fires', () => {
  const alerts = [...textOf('alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  const tested = [...textOf('alerts.test.yml').matchAll(/alertname="(\w+)"/g)].map(([, name]) => name)
  assert.ok(alerts.length > 10)
  assert.equal([...new Set(tested)].sort(), alerts.sort())
})

it.run()
