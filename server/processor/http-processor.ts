import { z } from 'zod'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { openOutgoingCalls } from '../platform/network/outgoing-calls.ts'
import {
  CallFailure,
  callOutcome,
  describeAnswer,
  exchange,
  type HttpAnswer,
  lookUp,
  moneyAmount,
  outcomeOfRefusal,
  plainText,
  unavailable,
} from './http-exchange.ts'
import { type CallOutcome, type LookupOutcome, PAYOUT_UNITS, type Processor } from './processor.ts'

interface HttpProcessorOptions {
  /**
   * Base address; `invoices` and `payouts` are appended to its path. A function is called for each request; `null` means that the
   * processor is not running, which counts as a failed connection.
   */
  url: string | (() => string | null)
  apiKey: string
  /** For the whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
  /** Epoch milliseconds. */
  now?: () => number
}

interface ContractCall {
  method: 'GET' | 'POST'
  path: 'invoices' | 'payouts'
  reference?: string
  attemptId?: string
  body?: object
  /** Redacted from details, in case the answer echoes them. */
  secrets: string[]
}

/** The generic contract over HTTP. `close` ends its connections; calls in flight end as unknown. */
export function createHttpProcessor(options: HttpProcessorOptions): Processor & { close(): Promise<void> } {
  const calls = openOutgoingCalls({ connect: { timeout: options.timeoutMs }, connections: 32 })
  const now = options.now ?? Date.now

  async function send({ method, path, reference, attemptId, body }: ContractCall): Promise<HttpAnswer> {
    const base = typeof options.url === 'function' ? options.url() : options.url
    if (base === null) throw new CallFailure('the processor is not running', true)
    const url = new URL(path, base.endsWith('/') ? base : `${base}/`)
    if (reference !== undefined) url.searchParams.set('reference', reference)
    const headers = {
      authorization: `Bearer ${options.apiKey}`,
      ...(attemptId === undefined ? {} : { 'idempotency-key': attemptId }),
    }
    return exchange(calls, { method, url, headers, body, timeoutMs: options.timeoutMs })
  }

  function call(contractCall: ContractCall): Promise<CallOutcome> {
    const read = (answer: HttpAnswer) => readCallAnswer(answer, now())
    return callOutcome(() => send(contractCall), read, contractCall.secrets)
  }

  function find(path: ContractCall['path'], reference: string): Promise<LookupOutcome> {
    const secrets = [options.apiKey]
    return lookUp(() => send({ method: 'GET', path, reference, secrets }), {
      schema: foundSchema,
      read: ({ items }) => readItems(items, reference),
      describe,
      secrets,
    })
  }

  return {
    payoutUnit: PAYOUT_UNITS.http,
    createInvoice: ({ attemptId, reference, amount, customer }) => {
      const body = { reference, amount: formatMoney(amount), currency: CURRENCY, customer }
      return call({ method: 'POST', path: 'invoices', attemptId, body, secrets: [options.apiKey] })
    },
    createPayout: ({ attemptId, reference, amount, destination }) => {
      const body = { reference, amount: formatMoney(amount), currency: CURRENCY, destination }
      const secrets = [options.apiKey, destination.iban]
      return call({ method: 'POST', path: 'payouts', attemptId, body, secrets })
    },
    findInvoices: ({ reference }) => find('invoices', reference),
    findPayouts: ({ reference }) => find('payouts', reference),
    close: () => calls.close(),
  }
}

// The page that merchants are sent to. An invalid one is left out; the invoice itself still counts.
const hostedUrl = z
  .string()
  .max(2048)
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''))
  .nullish()
  .catch(null)

const createdSchema = z.object({ id: plainText, hosted_url: hostedUrl })
const foundSchema = z.object({
  items: z
    .array(
      z.object({
        id: plainText,
        reference: z.string(),
        amount: moneyAmount,
        currency: z.string().regex(/^[A-Z]{3}$/),
        status: z.string().min(1).max(100),
        hosted_url: hostedUrl,
      }),
    )
    .max(100),
})

/** The outcome of a POST, by the table at `CallOutcome`. `now` is epoch ms, for a Retry-After that is a date. */
function readCallAnswer(answer: HttpAnswer, now: number): CallOutcome {
  const { status } = answer
  if (status === 200 || status === 201) {
    const created = createdSchema.safeParse(answer.body)
    if (!created.success) return { kind: 'unknown', detail: `answered ${status} without a readable id` }
    return { kind: 'created', id: created.data.id, hostedUrl: created.data.hosted_url ?? null }
  }
  return outcomeOfRefusal(answer, describe(answer), now)
}

/**
 * The outcome of a look-up. An answer that lists another reference is unusable: the processor ignored the filter, so neither its items
 * nor their absence say anything about ours.
 */
function readItems(items: z.infer<typeof foundSchema>['items'], reference: string): LookupOutcome {
  if (items.some((item) => item.reference !== reference)) {
    return unavailable('the look-up answered other references than the requested one')
  }
  return {
    kind: 'found',
    items: items.map(({ hosted_url, ...item }) => (hosted_url ? { ...item, hosted_url } : item)),
  }
}

function describe(answer: HttpAnswer): string {
  const body = z.record(z.string(), z.unknown()).safeParse(answer.body).data ?? {}
  const message = [body.detail, body.message, body.error, body.title].find((one) => typeof one === 'string')
  return describeAnswer(answer.status, message)
}
