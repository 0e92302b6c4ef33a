import { z } from 'zod'
import { CURRENCY, type Paisa, parseMoney } from '../../../shared/money.ts'
import type { Config } from '../../platform/config.ts'
import type { AttemptKind } from '../attempt.entity.ts'
import { describeAnswer, ProcessorApi, plainText, unavailable } from '../http-exchange.ts'
import {
  type CallOutcome,
  type LookupItem,
  type LookupKeys,
  type LookupOutcome,
  PAYOUT_UNITS,
  type Period,
  type Processor,
  type Shown,
  type UndeliveredEvent,
} from '../processor.ts'
import { outcomeOfStatus, statusMeaning } from './safepay-status.rule.ts'

/** Days until a payment request expires: 1 to 40. Then it is reported as failed, and `billing reissue` makes a new one. */
const EXPIRY_DAYS = 30
const PAGE = 100
/** The type of a payout in Safepay's records. */
const PAYOUT_TYPE = 'PAYOUT'
/** Pages of deliveries that are read for one endpoint. */
const MAX_PAGES = 10

export interface SafepayProcessorOptions {
  /** Ends in `/raastwire`. A function is called for each request. */
  url: string | (() => string)
  aggregatorId: string
  /** The aggregator merchant that payment requests are made for. */
  merchantId: string
  secretKey: string
  /** The unit of payout amounts in Safepay's records and events. */
  payoutEventUnit: 'rupees' | 'paisa'
  /** For the whole call, from connecting to the last byte of the answer, ms. */
  timeoutMs: number
  /** Epoch milliseconds. */
  now?: () => number
}

/** The settings of `PROCESSOR=safepay-raast`, which `readConfig` requires. */
export function safepayOptions(config: Config): SafepayProcessorOptions {
  return {
    url: config.SAFEPAY_URL,
    aggregatorId: config.SAFEPAY_AGGREGATOR_ID ?? '',
    merchantId: config.SAFEPAY_MERCHANT_ID ?? '',
    secretKey: config.SAFEPAY_SECRET_KEY ?? '',
    payoutEventUnit: config.SAFEPAY_PAYOUT_EVENT_UNIT,
    timeoutMs: config.PROCESSOR_TIMEOUT_MS,
  }
}

const errorSchema = z.object({ code: z.string().optional(), message: z.string().optional() })
/** Errors come in an envelope or flat. */
const errorBody = z.union([z.object({ error: errorSchema }).transform(({ error }) => error), errorSchema])

/** Requests under one aggregator. */
export function openSafepayApi(options: SafepayProcessorOptions): ProcessorApi {
  const { url, aggregatorId, secretKey, timeoutMs, now } = options
  return new ProcessorApi({
    base: () =>
      `${typeof url === 'function' ? url() : url}/v1/aggregators/${encodeURIComponent(aggregatorId)}`,
    headers: { 'x-sfpy-aggregator-secret-key': secretKey },
    secret: secretKey,
    timeoutMs,
    now,
    errorText(body) {
      const { code, message } = errorBody.safeParse(body).data ?? {}
      return [code, message].filter(Boolean).join(' ')
    },
  })
}

/**
 * Safepay Raast. An invoice is a payment request to the merchant's account, a payout an instant payment of whole rupees. The attempt's id is
 * the `request_id`, which makes a call idempotent and is the only key that a payout is found by.
 */
export function createSafepayProcessor(
  options: SafepayProcessorOptions,
): Processor & { close(): Promise<void> } {
  const api = openSafepayApi(options)
  const { payoutEventUnit, merchantId } = options

  function create(kind: AttemptKind, path: string, body: Echo, account: string): Promise<CallOutcome> {
    const request = { path, body, secrets: [account] }
    return api.call(request, createdSchema, 'token and status', ({ data }, status) =>
      readCreated(kind, data, status, body),
    )
  }

  async function find(kind: AttemptKind, { reference, attemptIds }: LookupKeys): Promise<LookupOutcome> {
    const unit = kind === 'payout' ? payoutEventUnit : 'paisa'
    const found = await Promise.all(
      attemptIds.map((attemptId) => {
        const query = { request_id: attemptId, limit: String(PAGE), offset: '0' }
        return api.lookUp({ path: 'payments', query }, listSchema, ({ data }): LookupOutcome => {
          const { count, payments } = data
          // Then neither its payments nor their absence say anything about ours.
          if (count !== payments.length)
            return unavailable('the look-up answered another number of payments than it counts')
          if (payments.some(({ request_id }) => request_id !== attemptId))
            return unavailable('the look-up answered other request ids than the requested one')
          const items = payments.map((payment) => readItem(kind, payment, reference, unit))
          const whole = items.filter((item) => item !== null)
          if (whole.length < items.length) return unavailable('the look-up answered an unreadable amount')
          return { kind: 'found', items: whole }
        })
      }),
    )
    const items: LookupItem[] = []
    for (const one of found) {
      if (one.kind === 'unavailable') return one
      items.push(...one.items)
    }
    return { kind: 'found', items }
  }

  async function undelivered(since: number): Promise<Shown<{ events: UndeliveredEvent[] }>> {
    const all = { limit: String(PAGE), offset: '0' }
    const listed = await api.lookUp({ path: 'webhooks', query: all }, endpointsSchema, ({ data }) => data)
    if ('kind' in listed) return listed
    const events: UndeliveredEvent[] = []
    for (const { token } of listed.endpoints ?? []) {
      const path = `webhooks/${encodeURIComponent(token)}/deliveries`
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const query = { status: 'WD_DEAD', limit: String(PAGE), offset: String(page * PAGE) }
        const read = await api.lookUp({ path, query }, deliveriesSchema, ({ data }) => data)
        if ('kind' in read) return read
        const deliveries = read.deliveries ?? []
        events.push(...deliveries.filter(({ at }) => Date.parse(at) >= since))
        if (deliveries.length < PAGE) break
      }
    }
    return { kind: 'found', events }
  }

  async function listRecords({ from, to }: Period, page: number) {
    const offset = page * PAGE
    const query = {
      start_date: String(Math.floor(from / 1000)),
      end_date: String(Math.ceil(to / 1000)),
      limit: String(PAGE),
      offset: String(offset),
    }
    return api.lookUp({ path: 'payments', query }, recordsSchema, ({ data: { count, payments } }) => {
      if (payments.length === 0 && offset < count) {
        return unavailable('the list of payments has fewer than it counts')
      }
      const records = payments.map(({ token, request_id, type, amount, status, created_at }) => ({
        id: token,
        attemptId: request_id || null,
        type: type ?? 'unknown',
        amount: readAmount(amount, type === PAYOUT_TYPE ? payoutEventUnit : 'paisa'),
        status,
        at: created_at,
      }))
      return { kind: 'found' as const, records, isLast: offset + payments.length >= count }
    })
  }

  return {
    payoutUnit: PAYOUT_UNITS['safepay-raast'],
    needsBillingAccount: true,
    async createInvoice({ attemptId, reference, amount, billingAccount }) {
      if (!billingAccount) return notSent('there is no account to request the money from')
      const [account, debitor] =
        'iban' in billingAccount
          ? [billingAccount.iban, { debitor_iban: billingAccount.iban }]
          : [billingAccount.raastId, { debitor_raast_id: billingAccount.raastId }]
      const body = {
        request_id: attemptId,
        amount,
        aggregator_merchant_identifier: merchantId,
        order_id: reference,
        type: 'RTP_LATER',
        expiry_in_days: EXPIRY_DAYS,
        ...debitor,
      }
      return create('invoice', 'payments', body, account)
    },
    async createPayout({ attemptId, amount, destination: { iban } }) {
      if (amount % PAYOUT_UNITS['safepay-raast'] !== 0) return notSent('Safepay is paid in whole rupees')
      const body = { request_id: attemptId, amount: String(amount / 100), creditor_iban: iban }
      return create('payout', 'payout', body, iban)
    },
    findInvoices: (keys) => find('invoice', keys),
    findPayouts: (keys) => find('payout', keys),
    accountTitle: (iban) =>
      api.lookUp({ path: 'title-fetch', query: { iban }, secrets: [iban] }, titleSchema, ({ data }) => {
        const { statusCode = 0, acctitle } = data
        return statusCode !== 0 || acctitle.trim() === ''
          ? unavailable(`the bank gave no account title (status ${statusCode})`)
          : { kind: 'found', title: acctitle.toWellFormed().replace(/\p{Cc}+/gu, ' ') }
      }),
    balance: () =>
      api.lookUp({ path: 'ledger/accounts' }, balanceSchema, ({ data }) => {
        const [account, ...others] = data.filter(({ currency }) => currency === CURRENCY)
        return account && others.length === 0 && /^-?\d{1,15}$/.test(account.balance)
          ? { kind: 'found', amount: Number(account.balance) }
          : unavailable('the ledger does not show one balance in PKR')
      }),
    undelivered,
    listRecords,
    close: () => api.close(),
  }
}

/** A call that would be wrong. No attempt of this adapter leads to it, but one that another processor was meant for can. */
function notSent(why: string): CallOutcome {
  return { kind: 'refused', status: 422, detail: `not sent: ${why}` }
}

/** What an answer repeats of its call, if it does. Another value means that the answer is about something else. */
interface Echo {
  request_id: string
  order_id?: string
}

const createdSchema = z.object({
  data: z.object({
    token: plainText,
    status: plainText,
    order_id: z.string().nullish(),
    request_id: z.string().nullish(),
  }),
})

/** The outcome of a POST that was answered with 200 or 201, by the status in the answer. */
function readCreated(
  kind: AttemptKind,
  { token: id, status: word, order_id, request_id }: z.infer<typeof createdSchema>['data'],
  status: number,
  echo: Echo,
): CallOutcome {
  const isOurs =
    (!request_id || request_id === echo.request_id) &&
    (!order_id || echo.order_id === undefined || order_id === echo.order_id)
  if (!isOurs) return { kind: 'unknown', detail: `answered ${status} about another request` }
  const outcome = outcomeOfStatus(kind, word)
  if (outcome === 'created') return { kind: outcome, id, hostedUrl: null }
  const detail = describeAnswer(status, word)
  return outcome === 'refused' ? { kind: outcome, status, detail, id } : { kind: outcome, detail }
}

const amountText = z.union([z.string(), z.number()]).transform(String)
const payment = z.object({ token: plainText, request_id: z.string(), amount: amountText, status: plainText })

function listOf<Item>(item: z.ZodType<Item>) {
  const payments = z.array(item).max(PAGE).nullish()
  return z.object({
    data: z.object({
      count: z.union([z.string().regex(/^\d{1,9}$/), z.int().nonnegative()]).transform(Number),
      payments: payments.transform((list) => list ?? []),
    }),
  })
}

const listSchema = listOf(payment)
const recordsSchema = listOf(
  payment.extend({
    request_id: z.string().nullish(),
    type: plainText.nullish(),
    created_at: z.iso.datetime({ offset: true }),
  }),
)

/** The status in the words of the port; Safepay's own word where its meaning is unclear. `null` for an unreadable amount. */
function readItem(
  kind: AttemptKind,
  { token: id, amount: text, status: word }: z.infer<typeof payment>,
  reference: string,
  unit: 'rupees' | 'paisa',
): LookupItem | null {
  const amount = readAmount(text, unit)
  const meaning = statusMeaning(kind, word)
  const status = meaning === 'unclear' ? word : meaning
  return amount === null ? null : { id, reference, amount, currency: CURRENCY, status }
}

function readAmount(text: string, unit: 'rupees' | 'paisa'): Paisa | null {
  if (unit === 'paisa') return /^\d{1,15}$/.test(text) ? Number(text) : null
  const amount = parseMoney(text)
  return amount !== null && amount >= 0 ? amount : null
}

const titleSchema = z.object({
  data: z.object({ statusCode: z.number().optional(), acctitle: z.string().max(500) }),
})

const ledgerAccount = z.object({ currency: z.string(), balance: amountText })
/** The aggregator's balance in paisa: one account, or a list of them. */
const balanceSchema = z.object({
  data: z.union([ledgerAccount.transform((account) => [account]), z.array(ledgerAccount)]),
})

const endpointsSchema = z.object({
  data: z.object({ endpoints: z.array(z.object({ token: plainText })).nullish() }),
})
const delivery = z
  .object({ event_id: plainText, type: plainText, created_at: z.iso.datetime({ offset: true }) })
  .transform(({ event_id: id, type, created_at: at }): UndeliveredEvent => ({ id, type, at }))
const deliveriesSchema = z.object({ data: z.object({ deliveries: z.array(delivery).nullish() }) })
