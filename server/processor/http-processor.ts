import { z } from 'zod'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { moneyAmount, ProcessorApi, plainText, unavailable } from './http-exchange.ts'
import { type LookupOutcome, PAYOUT_UNITS, type Processor } from './processor.ts'

interface HttpProcessorOptions {
  /** Base address. A function is called for each request; `null` means that the processor is not running. */
  url: string | (() => string | null)
  apiKey: string
  /** For the whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
  /** Epoch milliseconds. */
  now?: () => number
}

/** The generic contract over HTTP. `close` ends its connections; calls in flight end as unknown. */
export function createHttpProcessor(options: HttpProcessorOptions): Processor & { close(): Promise<void> } {
  const { url, apiKey, timeoutMs, now } = options
  const api = new ProcessorApi({
    base: typeof url === 'function' ? url : () => url,
    headers: { authorization: `Bearer ${apiKey}` },
    secret: apiKey,
    timeoutMs,
    now,
    errorText,
  })

  function create(path: string, attemptId: string, body: object, secrets: string[] = []) {
    const headers = { 'idempotency-key': attemptId }
    return api.call({ path, headers, body, secrets }, createdSchema, 'id', ({ id, hosted_url }) => {
      return { kind: 'created', id, hostedUrl: hosted_url ?? null }
    })
  }

  /** An answer that lists another reference is unusable: neither its items nor their absence say anything about ours. */
  function find(path: string, reference: string): Promise<LookupOutcome> {
    return api.lookUp({ path, query: { reference } }, foundSchema, ({ items }) =>
      items.some((item) => item.reference !== reference)
        ? unavailable('the look-up answered other references than the requested one')
        : {
            kind: 'found',
            items: items.map(({ hosted_url, ...item }) => (hosted_url ? { ...item, hosted_url } : item)),
          },
    )
  }

  return {
    payoutUnit: PAYOUT_UNITS.http,
    createInvoice: ({ attemptId, reference, amount, customer }) =>
      create('invoices', attemptId, { reference, amount: formatMoney(amount), currency: CURRENCY, customer }),
    createPayout({ attemptId, reference, amount, destination }) {
      const body = { reference, amount: formatMoney(amount), currency: CURRENCY, destination }
      return create('payouts', attemptId, body, [destination.iban])
    },
    findInvoices: ({ reference }) => find('invoices', reference),
    findPayouts: ({ reference }) => find('payouts', reference),
    close: () => api.close(),
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
const item = z.object({
  id: plainText,
  reference: z.string(),
  amount: moneyAmount,
  currency: z.string().regex(/^[A-Z]{3}$/),
  status: z.string().min(1).max(100),
  hosted_url: hostedUrl,
})
const foundSchema = z.object({ items: z.array(item).max(100) })

function errorText(body: unknown): string | undefined {
  const { detail, message, error, title } = z.record(z.string(), z.unknown()).safeParse(body).data ?? {}
  return [detail, message, error, title].find((one) => typeof one === 'string')
}
