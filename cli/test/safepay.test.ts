// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readConfig } from '../../server/platform/config.ts'
import { SAFEPAY_EVENT_TYPES } from '../../server/processor/safepay/safepay-events.ts'
import { SafepayDouble } from '../../server/test/safepay/safepay-double.ts'
import { SAFEPAY_SETTINGS } from '../../server/test/safepay/safepay-market.ts'
import { findingsIn } from '../doctor/finding.ts'
import { examineSafepay } from '../doctor/safepay.ts'
import { runHere } from './run-here.ts'

const URL = 'https://shop.example/webhooks/processor'
const it = suite('Safepay for the operator')
let double: SafepayDouble
let settings: Record<string, string>
it.before.each(async () => {
  double = await SafepayDouble.open()
  settings = { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url, PUBLIC_BASE_URL: 'https://shop.example' }
})
it.after.each(async () => {
  await double.close()
  assert.equal(double.complaints, [])
})

const register = async (own: Record<string, string>, ...options: string[]) => {
  const ended = await runHere(['processor', 'register-webhook', '--json', ...options], own)
  return { ...ended, ...(ended.stdout === '' ? {} : JSON.parse(ended.stdout)) }
}
const examine = async (own: Record<string, string>) =>
  findingsIn(await examineSafepay(readConfig(own))).map(
    ({ state, detail, mend }) => `${state}: ${detail} ${mend ?? ''}`,
  )

it('registers the webhook once, corrects it, and rotates its secret', async () => {
  const { PROCESSOR_WEBHOOK_SECRETS: _none, ...first } = settings
  const made = await register(first)
  const [endpoint] = double.endpoints
  assert.ok(endpoint)
  assert.equal([made.change, made.url, made.secret], ['created', URL, endpoint.secret])
  assert.equal(endpoint.event_types, SAFEPAY_EVENT_TYPES)
  assert.equal([(await register(settings)).change, double.endpoints.length], ['kept', 1])
  Object.assign(endpoint, { enabled: false, event_types: ['payment.created'] })
  assert.is((await register(settings)).change, 'updated')
  assert.equal([endpoint.enabled, endpoint.event_types], [true, SAFEPAY_EVENT_TYPES])
  const rotated = await register(settings, '--rotate')
  assert.equal([rotated.change, rotated.secret], ['rotated', endpoint.secret])
  assert.is.not(rotated.secret, made.secret)
  for (const [wrong, why] of [
    [{ SAFEPAY_SECRET_KEY: 'sk_wrong' }, /error\.unauthorized_access/],
    [{ PROCESSOR: 'sandbox', PROCESSOR_SIGNATURE: '' }, /PROCESSOR=safepay-raast/],
  ] as const) {
    const { code, stderr } = await register({ ...settings, ...wrong })
    assert.is(code, 1)
    assert.match(stderr, why)
  }
})

it('the doctor names each wrong setting', async () => {
  for (const [name, value] of [
    ['SAFEPAY_SECRET_KEY', 'sk_wrong'],
    ['SAFEPAY_AGGREGATOR_ID', 'agg_wrong'],
    ['SAFEPAY_MERCHANT_ID', 'am_wrong'],
    ['SAFEPAY_URL', 'http://127.0.0.1:9/raastwire'],
    ['SAFEPAY_URL', new globalThis.URL('/other', double.url).href],
  ] as const) {
    const findings = await examine({ ...settings, [name]: value })
    assert.is(findings.length, 1)
    assert.match(findings[0] ?? '', new RegExp(`^fail: .*Check ${name}`))
  }
  const unregistered = await examine(settings)
  const found = /ok: .*\nok: the clock .*\ninfo: .*10,000,000\.00.*\nfail: no webhook endpoint/
  assert.match(unregistered.join('\n'), found)
  await register(settings)
  const last = async (more: Record<string, string> = {}) => (await examine({ ...settings, ...more })).at(-1)
  const lacks = /PROCESSOR_WEBHOOK_SECRETS lacks the secret .* register-webhook --rotate/
  assert.match((await last()) ?? '', lacks)
  const { secret } = await register(settings, '--rotate')
  const right = { PROCESSOR_WEBHOOK_SECRETS: `${secret},former` }
  assert.match((await last(right)) ?? '', /^ok: Safepay sends its events to/)
  const scheme = { ...right, PROCESSOR_SIGNATURE: 'standard-webhooks' }
  assert.match((await last(scheme)) ?? '', /^fail: PROCESSOR_SIGNATURE is standard-webhooks/)
  double.instead.set('GET ledger/accounts', [{ status: 200, body: '<html>' }])
  assert.match((await examine({ ...settings, ...right }))[0] ?? '', /^fail: answered 200 without JSON/)
})

it.run()
