import { formatMoney } from '../../../shared/money.ts'
import type { Queries } from '../../platform/database/database.ts'
import { PAYOUT_UNITS } from '../../processor/processor.ts'
import { SAFEPAY_EVENT_TYPES } from '../../processor/safepay/safepay-events.ts'
import { startSandbox } from '../../processor/sandbox/start-sandbox.ts'
import { AGGREGATOR_ID, SafepayDouble } from '../safepay/safepay-double.ts'
import { SAFEPAY_SETTINGS } from '../safepay/safepay-market.ts'

const API_KEY = 'key-of-the-processor'
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`
/** Long enough for the server to have recorded the answer to most calls before their event comes, ms. */
const SETTLES_AFTER_MS = 30
/** A server that has died is back before this is over. */
const REPEATS_AFTER_MS = Array.from({ length: 3000 }, () => 20)

export const PROCESSORS = ['http', 'safepay-raast'] as const
export type ProcessorName = (typeof PROCESSORS)[number]

/** What the processor holds for one billing cycle or payout. */
export interface HeldOutside {
  /** Our id. */
  reference: string
  /** Decimal rupees. */
  amount: string
  status: string
}

/** A processor in the process of the proof. It outlives the server. */
export interface OutsideProcessor {
  /** Settings of the server. */
  readonly settings: Record<string, string>
  /** Payouts are whole multiples of this, paisa. */
  readonly payoutUnit: number
  /** Where a call of the generic contract (`POST /payouts`) goes. */
  pathOf(call: string): string
  /** Has so many calls take effect without an answer from now on. */
  loseAnswers(count: number): void
  /** Delivers what has become due. */
  wake(): void
  held(db: Queries): Promise<{ invoices: HeldOutside[]; payouts: HeldOutside[] }>
  /** What no client of its contract may do. */
  complaints(): readonly string[]
  close(): Promise<void>
}

export interface Outside {
  /** Where the server takes webhooks, or took them last; `null` before its first start. */
  webhookUrl(): string | null
  /** Epoch ms. */
  now(): number
}

export function openOutsideProcessor(name: ProcessorName, outside: Outside): Promise<OutsideProcessor> {
  return name === 'http' ? openSandbox(outside) : openSafepay(outside)
}

/** The sandbox, which speaks the generic contract. */
async function openSandbox({ webhookUrl, now }: Outside): Promise<OutsideProcessor> {
  const sandbox = await startSandbox({
    databasePath: ':memory:',
    host: '127.0.0.1',
    port: 0,
    apiKey: API_KEY,
    webhookSecret: WEBHOOK_SECRET,
    webhookUrl,
    now,
    random: () => 0.5,
    retryBaseMs: 20,
  })
  return {
    settings: {
      PROCESSOR: 'http',
      PROCESSOR_URL: sandbox.url,
      PROCESSOR_API_KEY: API_KEY,
      PROCESSOR_WEBHOOK_SECRETS: WEBHOOK_SECRET,
    },
    payoutUnit: PAYOUT_UNITS.http,
    pathOf: (call) => call,
    loseAnswers: (count) => {
      sandbox.switches({ lose_next_answers: count })
    },
    wake: () => sandbox.wake(),
    held: async () => sandbox.state(),
    complaints: () => [],
    close: () => sandbox.close(),
  }
}

/** The double of Safepay, which pays everything by itself. */
async function openSafepay({ webhookUrl, now }: Outside): Promise<OutsideProcessor> {
  const double = await SafepayDouble.open()
  double.now = now
  double.settlesAfterMs = SETTLES_AFTER_MS
  double.repeatsAfterMs = REPEATS_AFTER_MS
  double.endpoints.push({
    token: 'wh_1',
    // The server comes back on another port.
    get url() {
      return webhookUrl() ?? 'http://127.0.0.1:1'
    },
    enabled: true,
    event_types: SAFEPAY_EVENT_TYPES,
    secret: SAFEPAY_SETTINGS.PROCESSOR_WEBHOOK_SECRETS,
  })
  const prefix = `/raastwire/v1/aggregators/${AGGREGATOR_ID}`
  const calls: Record<string, string> = {
    'POST /invoices': `POST ${prefix}/payments`,
    'GET /invoices': `GET ${prefix}/payments`,
    'POST /payouts': `POST ${prefix}/payout`,
    'GET /payouts': `GET ${prefix}/payments`,
  }
  return {
    settings: { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url },
    payoutUnit: PAYOUT_UNITS['safepay-raast'],
    pathOf: (call) => calls[call] ?? call,
    loseAnswers(count) {
      for (const path of ['POST payments', 'POST payout']) {
        double.instead.set(
          path,
          Array.from({ length: count }, () => ({ after: 'reset' as const })),
        )
      }
    },
    wake: () => undefined,
    async held(db) {
      const attempts = await db.selectFrom('processor_attempts').select(['id', 'subject_id']).execute()
      const subjects = new Map(attempts.map(({ id, subject_id }) => [id, subject_id]))
      const of = (type: 'RTP_LATER' | 'PAYOUT') =>
        double.payments
          .filter((payment) => payment.type === type)
          .map(({ requestId, amount, status }) => ({
            reference: subjects.get(requestId) ?? `no attempt of ours: ${requestId}`,
            amount: formatMoney(amount),
            status: status === 'P_SETTLED' ? 'paid' : status,
          }))
      return { invoices: of('RTP_LATER'), payouts: of('PAYOUT') }
    },
    complaints: () => [...double.complaints, ...double.dead.map(({ type }) => `${type} was given up`)],
    close: () => double.close(),
  }
}
