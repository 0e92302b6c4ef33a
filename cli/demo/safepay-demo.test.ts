// proof only
// database: none
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { assertMapped, assertNone } from '../../server/test/testkit/pluck.ts'
import { runHere } from '../test/run-here.ts'
import type { DemoResult } from './run-demo.ts'

const DOUBLE = fileURLToPath(new URL('../../server/test/safepay/run-double.ts', import.meta.url))
const LAST_SETTING = 'DEMO_FAIL_PAYOUT_URL'

/** As with the sandbox, but for the paisa of the payout, which stay in the balance. */
const FIGURES = {
  merchant: { accepted: 5, rejected: 5, unbilled: '110.00', billed: '1935.79', paid: '1935.79' },
  creator: { pending: '100.00', released: '0.81', in_transit: '0.00', paid: '1759.00' },
  platform: { fees: '185.98', credits: '0.00', clearing: '176.79' },
}

interface Context {
  double: ChildProcess
  /** What the double prints for a service that uses it. */
  settings: Record<string, string>
}

const it = suite<Context>('the demo with Safepay')
it.before.each(async (context) => {
  const double = spawn(process.execPath, [DOUBLE], { stdio: ['ignore', 'pipe', 'inherit'] })
  const settings: Record<string, string> = {}
  for await (const line of createInterface({ input: double.stdout })) {
    const [, name = '', value = ''] = /^export (\w+)=(\S+)$/.exec(line) ?? []
    settings[name] = value
    if (name === LAST_SETTING) break
  }
  Object.assign(context, { double, settings })
})
it.after.each(async ({ double }) => {
  const ended = once(double, 'exit')
  double.kill('SIGINT')
  // Another exit code means that it was sent something that Safepay does not accept.
  assert.equal(await ended, [0, null])
})

const demo = (environment: Record<string, string>) =>
  runHere(['demo', '--processor', 'safepay-raast', '--json'], environment)

function completeResult(document: string): DemoResult {
  const result: DemoResult = JSON.parse(document)
  assertNone(result.checks, (check) => !check.ok)
  assert.equal([result.ok, result.figures], [true, FIGURES])
  assert.ok(result.checks.some(({ name, found }) => name === 'state of the payout' && found === 'paid'))
  return result
}

const failedPayout = ({ steps }: DemoResult) =>
  steps.find(({ title }) => title.startsWith('The first payout fails'))?.rows

it('goes from an order to a paid payout, after one that failed', async ({ settings }) => {
  const { code, stdout, stderr } = await demo(settings)
  assert.equal([code, stderr], [0, ''])
  const result = completeResult(stdout)
  assert.equal(failedPayout(result)?.[1], ['payout', '1,759.00', 'failed', 'P_FAILED'])
})

it('says that it skips the failure where it cannot make a payout fail', async ({ settings }) => {
  const { [LAST_SETTING]: _url, ...rest } = settings
  const { code, stdout } = await demo(rest)
  assert.is(code, 0)
  const result = completeResult(stdout)
  assertMapped(failedPayout(result) ?? [], ([word]) => word, ['skipped'])
})

it('does not start without a double on this machine, and names the setting', async ({ settings }) => {
  for (const [wrong, reason] of [
    [{ SAFEPAY_URL: 'https://api.getsafepay.com/raastwire' }, /SAFEPAY_URL must be the address of a double/],
    [{ SAFEPAY_URL: '' }, /SAFEPAY_URL must be the address of a double/],
    [{ SAFEPAY_URL: 'http://127.0.0.1:9/raastwire' }, /Check SAFEPAY_URL/],
    [{ SAFEPAY_SECRET_KEY: 'sk_wrong' }, /error\.unauthorized_access/],
    [{ SAFEPAY_AGGREGATOR_ID: '' }, /SAFEPAY_AGGREGATOR_ID/],
  ] as const) {
    const { code, stderr } = await demo({ ...settings, ...wrong })
    assert.is(code, 1)
    assert.match(stderr, reason)
  }
})

it.run()
