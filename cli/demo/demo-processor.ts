import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { isLoopbackHost } from '../../server/platform/network/loopback.ts'
import { PAYOUT_UNITS } from '../../server/processor/payout-unit.ts'
import type { Paisa } from '../../shared/money.ts'
import { type CommandSetting, runCommand } from './command-line.ts'
import { DemoStopped } from './demo-stopped.ts'
import { BILLING_ACCOUNT, FAILURE_REASON } from './scenario.ts'
import type { Listening, ServerProcess } from './server-process.ts'
import { refusedBy, type ServiceClient } from './service-client.ts'
import type { StepReport } from './step-report.ts'

export type DemoProcessorName = 'sandbox' | 'safepay-raast'

/** The demo under way, as far as a processor needs it. */
interface Running {
  server: ServerProcess
  client: ServiceClient
}

/** What the demo has to know of the processor that its server uses. */
export interface DemoProcessor {
  /** Settings of the server. */
  readonly settings: Record<string, string>
  /** The port that the server must listen on; 0 for any. */
  readonly port: number
  /** Payouts are whole multiples of this. */
  readonly payoutUnit: Paisa
  /** The merchant's account, where invoices are requested from it. */
  readonly billingAccount: { iban: string } | null
  /** How a payment or payout is confirmed, for people. */
  readonly confirmation: string
  /** Its address and what it is, for people. */
  describe(server: Listening): readonly [url: string, what: string]
  /** Called before the first invoice, once or more often. */
  prepare(demo: Running): Promise<void>
  /** How to make the next payout fail, once or more often, and the reason that it then gives; or why it cannot be done. */
  readonly failure: { reason: string; plan(demo: Running): Promise<void> } | { impossible: string }
  /** Checks how many of its events were settled after one payment and so many payouts. */
  checkEvents(report: StepReport, settled: number, payouts: number): void
}

/** Throws `DemoStopped` when it cannot be used. */
export async function openDemoProcessor(
  name: DemoProcessorName,
  setting: CommandSetting,
): Promise<DemoProcessor> {
  return name === 'sandbox' ? sandbox(setting.folder) : safepay(setting)
}

/** Long enough for the service to have heard the answer before the event comes, short enough to wait for. */
const EVENT_DELAY_MS = 60

/** The sandbox inside the server, which takes orders over HTTP. */
function sandbox(folder: string): DemoProcessor {
  const setSwitches = async (demo: Running, change: Record<string, unknown>) => {
    const { sandboxUrl } = await demo.server.ready()
    const { api_key } = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'))
    const answer = await demo.client.send({
      method: 'PUT',
      url: `${sandboxUrl}/_sandbox/switches`,
      headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
      body: JSON.stringify(change),
    })
    if (answer.status !== 200) throw refusedBy('PUT /_sandbox/switches', answer)
  }
  return {
    settings: { PROCESSOR: 'sandbox' },
    port: 0,
    payoutUnit: PAYOUT_UNITS.sandbox,
    billingAccount: null,
    confirmation: 'confirmed by signed webhook, sent twice',
    describe: ({ sandboxUrl }) => [sandboxUrl ?? '', 'the sandbox: it moves no real money'],
    prepare: (demo) => setSwitches(demo, { event_delay_ms: EVENT_DELAY_MS, duplicate_events: 1 }),
    failure: {
      reason: FAILURE_REASON,
      plan: (demo) => setSwitches(demo, { fail_next_payouts: 1, failure_reason: FAILURE_REASON }),
    },
    checkEvents: (report, settled, payouts) => report.check('processor events settled', settled, 1 + payouts),
  }
}

const SAFEPAY_SETTINGS = [
  'SAFEPAY_URL',
  'SAFEPAY_AGGREGATOR_ID',
  'SAFEPAY_MERCHANT_ID',
  'SAFEPAY_SECRET_KEY',
  'SAFEPAY_PAYOUT_EVENT_UNIT',
]
/** Where a double of Safepay can be made to fail the next payout, by POST. Safepay itself has nothing like it. */
const FAIL_PAYOUT_URL = 'DEMO_FAIL_PAYOUT_URL'

/**
 * A double of Safepay Raast on this machine, with the settings of the environment. Not Safepay itself: its events could not reach the demo's
 * server, and the accounts of the story are invented.
 */
async function safepay({ folder, environment, signal }: CommandSetting): Promise<DemoProcessor> {
  const url = process.env.SAFEPAY_URL ?? ''
  if (!URL.canParse(url) || !isLoopbackHost(new URL(url).hostname)) {
    throw new DemoStopped(
      'SAFEPAY_URL must be the address of a double of Safepay on this machine; see "Try it" in the guide "safepay".',
    )
  }
  const given = SAFEPAY_SETTINGS.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const port = await freePort()
  const settings: Record<string, string> = {
    ...Object.fromEntries(given),
    PROCESSOR: 'safepay-raast',
    PUBLIC_BASE_URL: `http://127.0.0.1:${port}`,
  }
  // The server needs the secret at its start, so the webhook is registered before it. A former demo may have used the port.
  const registered = await runCommand({ folder, environment: { ...environment, ...settings }, signal }, [
    'processor',
    'register-webhook',
    '--rotate',
  ])
  const { secret } = z.object({ secret: z.string() }).parse(registered)
  const failUrl = process.env[FAIL_PAYOUT_URL]
  return {
    settings: { ...settings, PROCESSOR_WEBHOOK_SECRETS: secret },
    port,
    payoutUnit: PAYOUT_UNITS['safepay-raast'],
    billingAccount: BILLING_ACCOUNT,
    confirmation: 'confirmed by signed webhook',
    describe: () => [url, 'a double of Safepay Raast; payouts are whole rupees'],
    prepare: async () => undefined,
    failure: failUrl
      ? {
          reason: 'P_FAILED',
          async plan({ client }) {
            const answer = await client.send({ method: 'POST', url: failUrl }).catch(() => {
              throw new DemoStopped(`${FAIL_PAYOUT_URL} does not answer`)
            })
            if (answer.status >= 300) throw refusedBy(FAIL_PAYOUT_URL, answer)
          },
        }
      : {
          impossible: `a processor cannot be made to fail a payout, unless a double says how in ${FAIL_PAYOUT_URL}`,
        },
    // Its documents disagree about how many events a payment or payout has.
    checkEvents: (report, settled, payouts) =>
      report.check('an event for the payment and each payout', String(settled >= 1 + payouts), 'true'),
  }
}

/** A port that nothing listens on now. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no free port')
  return address.port
}
