import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { AGGREGATOR_ID, FAIL_NEXT_PAYOUT, MERCHANT_ID, SafepayDouble, SECRET_KEY } from './safepay-double.ts'

/*
 * Runs the double of Safepay by hand and prints the settings of a service that uses it. It pays every payment request and every payout after
 * a moment. Ctrl-C ends it; it forgets everything, and its exit code is 1 after requests that Safepay would not have understood.
 *
 *   node server/test/safepay/run-double.ts [--port 4010] [--title "SANA MIRZA"] [--settle-after 300]
 */

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    /** Of every account. */
    title: { type: 'string', default: 'SANA MIRZA' },
    /** ms. */
    'settle-after': { type: 'string', default: '300' },
  },
})

const double = await SafepayDouble.open(Number(values.port))
double.title = values.title
double.settlesAfterMs = Number(values['settle-after'])
const settings = {
  PROCESSOR: 'safepay-raast',
  SAFEPAY_URL: double.url,
  SAFEPAY_AGGREGATOR_ID: AGGREGATOR_ID,
  SAFEPAY_MERCHANT_ID: MERCHANT_ID,
  SAFEPAY_SECRET_KEY: SECRET_KEY,
  DEMO_FAIL_PAYOUT_URL: new URL(FAIL_NEXT_PAYOUT, double.url).href,
}
for (const [name, value] of Object.entries(settings)) console.log(`export ${name}=${value}`)

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
await double.close()
for (const complaint of double.complaints) console.error(complaint)
process.exitCode = double.complaints.length > 0 ? 1 : 0
