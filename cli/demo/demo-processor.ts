import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { isLoopbackHost } from '../../server/platform/network/loopback.ts'
import { PAYOUT_UNITS } from '../../server/processor/processor.ts'
import type { Paisa } from '../../shared/money.ts'
import {
  type DemoService,
  type DemoSetting,
  DemoStopped,
  ownSettings,
  runCommand,
  send,
} from './demo-service.ts'

export type DemoProcessorName = 'sandbox' | 'safepay-raast'

/** What the demo has to know of the processor that its service uses. */
export interface DemoProcessor {
  /** Settings of the service. */
  readonly settings: Record<string, string>
  /** The port that the service must listen on; 0 for any. */
  readonly port: number
  /** Payouts are whole multiples of this. */
  readonly payoutUnit: Paisa
  /** Whether invoices are requested from an account of the merchant. */
  readonly needsBillingAccount: boolean
  /** How a payment or payout is confirmed, for people. */
  readonly confirmation: string
  /** Its address and what it is, for people. */
  describe(service: DemoService): readonly [url: string, what: string]
  /** Called before the first invoice. */
  prepare(service: DemoService): Promise<unknown>
  /** How to make the next payout fail, and the reason that it then gives; or why it cannot be done. */
  readonly failure: { reason: string; plan(service: DemoService): Promise<unknown> } | { impossible: string }
}

/** Throws `DemoStopped` when it cannot be used. */
export const openDemoProcessor = async (name: DemoProcessorName, setting: DemoSetting) =>
  name === 'sandbox' ? sandbox() : safepay(setting)

const FAILURE_REASON = 'the account is closed for credits today'
/** Long enough for the service to have heard the answer before the event comes, short enough to wait for. */
const EVENT_DELAY_MS = 60

/** The sandbox inside the service, which takes orders over HTTP. */
function sandbox(): DemoProcessor {
  const setSwitches = ({ folder, sandboxUrl }: DemoService, change: Record<string, unknown>) => {
    const { api_key } = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'))
    return send(`${sandboxUrl}/_sandbox/switches`, 'PUT', api_key, change)
  }
  return {
    settings: { PROCESSOR: 'sandbox' },
    port: 0,
    payoutUnit: PAYOUT_UNITS.sandbox,
    needsBillingAccount: false,
    confirmation: 'confirmed by signed webhook, sent twice',
    describe: ({ sandboxUrl }) => [sandboxUrl ?? '', 'the sandbox: it moves no real money'],
    prepare: (service) => setSwitches(service, { event_delay_ms: EVENT_DELAY_MS, duplicate_events: 1 }),
    failure: {
      reason: FAILURE_REASON,
      plan: (service) => setSwitches(service, { fail_next_payouts: 1, failure_reason: FAILURE_REASON }),
    },
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
 * service, and the accounts of the story are invented.
 */
async function safepay(setting: DemoSetting): Promise<DemoProcessor> {
  const url = process.env.SAFEPAY_URL ?? ''
  if (!URL.canParse(url) || !isLoopbackHost(new URL(url).hostname)) {
    throw new DemoStopped(
      'SAFEPAY_URL must be the address of a double of Safepay on this machine; see "Try it" in the guide "safepay".',
    )
  }
  const port = await freePort()
  const settings: Record<string, string> = {
    ...ownSettings(SAFEPAY_SETTINGS),
    PROCESSOR: 'safepay-raast',
    PUBLIC_BASE_URL: `http://127.0.0.1:${port}`,
  }
  // The service needs the secret at its start, so the webhook is registered before it. A former demo may have used the port.
  const environment = { ...setting.environment, ...settings }
  const register = ['processor', 'register-webhook', '--rotate']
  const registered = await runCommand({ ...setting, environment }, register)
  const { secret } = z.object({ secret: z.string() }).parse(registered)
  const failUrl = process.env[FAIL_PAYOUT_URL]
  return {
    settings: { ...settings, PROCESSOR_WEBHOOK_SECRETS: secret },
    port,
    payoutUnit: PAYOUT_UNITS['safepay-raast'],
    needsBillingAccount: true,
    confirmation: 'confirmed by signed webhook',
    describe: () => [url, 'a double of Safepay Raast; payouts are whole rupees'],
    prepare: async () => undefined,
    failure: failUrl
      ? { reason: 'P_FAILED', plan: () => send(failUrl, 'POST') }
      : {
          impossible: `a processor cannot be made to fail a payout, unless a double says how in ${FAIL_PAYOUT_URL}`,
        },
  }
}

/** A port that nothing listens on now. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
