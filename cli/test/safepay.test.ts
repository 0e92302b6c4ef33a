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

interface Context {
  double: SafepayDouble
  settings: Record<string, string>
}

const URL = 'https://shop.example/webhooks/processor'
const it = suite<Context>('Safepay for the operator')
it.before.each(async (context) => {
  context.double = await SafepayDouble.open()
  const { double } = context
  context.settings = { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url, PUBLIC_BASE_URL: 'https://shop.example' }
})
it.after.each(async ({ double }) => {
  await double.close()
  assert.equal(double.complaints, [])
})

const register = async (settings: Record<string, string>, ...options: string[]) => {
  const { code, stdout, stderr } = await runHere(
    ['processor', 'register-webhook', '--json', ...options],
    settings,
  )
  return { code, stderr, ...(stdout === '' ? {} : JSON.parse(stdout)) }
}
const examine = async (settings: Record<string, string>) =>
  findingsIn(await examineSafepay(readConfig(settings))).map(
    ({ state, detail, mend }) => `${state}: ${detail} ${mend ?? ''}`,
  )

it('registers the webhook once, corrects it, and rotates its secret', async ({ double, settings }) => {
  const { PROCESSOR_WEBHOOK_SECRETS: _none, ...first } = settings
  const made = await register(first)
  const [endpoint] = double.endpoints
  assert.equal([made.change, made.url, made.secret], ['created', URL, endpoint?.secret])
  assert.equal(endpoint?.event_types, SAFEPAY_EVENT_TYPES)
  assert.equal([(await register(settings)).change, double.endpoints.length], ['kept', 1])
  if (endpoint) Object.assign(endpoint, { enabled: false, event_types: ['payment.created'] })
  assert.is((await register(settings)).change, 'updated')
  assert.equal([endpoint?.enabled, endpoint?.event_types], [true, SAFEPAY_EVENT_TYPES])
  const rotated = await register(settings, '--rotate')
  assert.equal([rotated.change, rotated.secret], ['rotated', endpoint?.secret])
  assert.is.not(rotated.secret, made.secret)
  const refused = await register({ ...settings, SAFEPAY_SECRET_KEY: 'sk_wrong' })
  assert.equal([refused.code, /error\.unauthorized_access/.test(refused.stderr)], [1, true])
  const elsewhere = await register({ ...settings, PROCESSOR: 'sandbox', PROCESSOR_SIGNATURE: '' })
  assert.equal([elsewhere.code, /PROCESSOR=safepay-raast/.test(elsewhere.stderr)], [1, true])
})

it('the doctor names each wrong setting', async ({ double, settings }) => {
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
  assert.match(
    unregistered.join('\n'),
    /ok: .*\nok: the clock .*\ninfo: .*10,000,000\.00.*\nfail: no webhook endpoint/,
  )
  await register(settings)
  assert.match(
    (await examine(settings)).at(-1) ?? '',
    /PROCESSOR_WEBHOOK_SECRETS lacks the secret .* register-webhook --rotate/,
  )
  const { secret } = await register(settings, '--rotate')
  const right = { ...settings, PROCESSOR_WEBHOOK_SECRETS: `${secret},former` }
  assert.match((await examine(right)).at(-1) ?? '', /^ok: Safepay sends its events to/)
  const wrongScheme = { ...right, PROCESSOR_SIGNATURE: 'standard-webhooks' }
  assert.match((await examine(wrongScheme)).at(-1) ?? '', /^fail: PROCESSOR_SIGNATURE is standard-webhooks/)
  double.instead.set('GET ledger/accounts', [{ status: 200, body: '<html>' }])
  assert.match((await examine(right))[0] ?? '', /^fail: answered 200 without JSON/)
})

it.run()
