import { z } from 'zod'
import { CURRENCY, type Paisa, parseMoney } from '../../../shared/money.ts'
import type { Config } from '../../platform/config.ts'
import type { AttemptKind } from '../attempt.entity.ts'
import {
  callOutcome,
  describeAnswer,
  type HttpAnswer,
  lookUp,
  outcomeOfRefusal,
  plainText,
  type Unavailable,
  unavailable,
} from '../http-exchange.ts'
import {
  type BalanceOutcome,
  type CallOutcome,
  type HeldRecord,
  type LookupItem,
  type LookupKeys,
  type LookupOutcome,
  PAYOUT_UNITS,
  type Period,
  type Processor,
  type RecordsOutcome,
  type TitleOutcome,
  type UndeliveredOutcome,
} from '../processor.ts'
import { describeError, SafepayApi, type SafepayOptions } from './safepay-api.ts'
import { outcomeOfStatus, statusMeaning } from './safepay-status.rule.ts'

/** Days until a payment request expires: 1 to 40. Then it is reported as failed, and `billing reissue` makes a new one. */
const EXPIRY_DAYS = 30
const PAGE = 100
/** The type of a payout in Safepay's records. */
const PAYOUT_TYPE = 'PAYOUT'
/** Pages of deliveries that are read for one endpoint. */
const MAX_PAGES = 10

export interface SafepayProcessorOptions extends SafepayOptions {
  /** The aggregator merchant that payment requests are made for. */
  merchantId: string
  /** The unit of payout amounts in Safepay's records and events. */
  payoutEventUnit: 'rupees' | 'paisa'
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

/**
 * Safepay Raast. An invoice is a payment request to the merchant's account, a payout an instant payment of whole rupees. The attempt's id is
 * the `request_id`, which makes a call idempotent and is the only key that a payout is found by.
 */
export function createSafepayProcessor(
  options: SafepayProcessorOptions,
): Processor & { close(): Promise<void> } {
  const api = new SafepayApi(options)
  const now = options.now ?? Date.now

  function call(
    kind: AttemptKind,
    send: () => Promise<HttpAnswer>,
    expected: Echo,
    secrets: readonly string[],
  ): Promise<CallOutcome> {
    return callOutcome(send, (answer) => readCallAnswer(kind, answer, expected, now()), secrets)
  }

  async function find(kind: AttemptKind, { reference, attemptIds }: LookupKeys): Promise<LookupOutcome> {
    const found = await Promise.all(attemptIds.map((attemptId) => findOne(kind, reference, attemptId)))
    const items: LookupItem[] = []
    for (const one of found) {
      if (one.kind === 'unavailable') return one
      items.push(...one.items)
    }
    return { kind: 'found', items }
  }

  function findOne(kind: AttemptKind, reference: string, attemptId: string): Promise<LookupOutcome> {
    const query = { request_id: attemptId, limit: String(PAGE), offset: '0' }
    const asked = { kind, reference, attemptId, unit: options.payoutEventUnit }
    return ask('payments', query, listSchema, ({ data }) => readPayments(data, asked))
  }

  function ask<Body, Outcome extends object>(
    path: string,
    query: Record<string, string>,
    schema: z.ZodType<Body>,
    read: (body: Body) => Outcome | Unavailable,
    secrets: readonly string[] = [],
  ): Promise<Outcome | Unavailable> {
    const all = [options.secretKey, ...secrets]
    return lookUp(() => api.get(path, query), { schema, read, describe: describeError, secrets: all })
  }

  async function undelivered(since: number): Promise<UndeliveredOutcome> {
    const all = { limit: String(PAGE), offset: '0' }
    const listed = await ask('webhooks', all, endpointsSchema, ({ data }) => ({ kind: 'found', ...data }))
    if (listed.kind === 'unavailable') return listed
    const events: UndeliveredEvent[] = []
    for (const { token } of listed.endpoints ?? []) {
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const query = { status: 'WD_DEAD', limit: String(PAGE), offset: String(page * PAGE) }
        const path = `webhooks/${encodeURIComponent(token)}/deliveries`
        const read = await ask(path, query, deliveriesSchema, readDeliveries)
        if (read.kind === 'unavailable') return read
        events.push(...read.events.filter(({ at }) => Date.parse(at) >= since))
        if (read.events.length < PAGE) break
      }
    }
    return { kind: 'found', events }
  }

  async function listRecords({ from, to }: Period, page: number): Promise<RecordsOutcome> {
    const offset = page * PAGE
    const query = {
      start_date: String(Math.floor(from / 1000)),
      end_date: String(Math.ceil(to / 1000)),
      limit: String(PAGE),
      offset: String(offset),
    }
    return ask('payments', query, recordsSchema, ({ data }) =>
      readRecords(data, offset, options.payoutEventUnit),
    )
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
        aggregator_merchant_identifier: options.merchantId,
        order_id: reference,
        type: 'RTP_LATER',
        expiry_in_days: EXPIRY_DAYS,
        ...debitor,
      }
      const echo = { order_id: reference, request_id: attemptId }
      return call('invoice', () => api.post('payments', body), echo, [options.secretKey, account])
    },
    async createPayout({ attemptId, amount, destination: { iban } }) {
      if (amount % PAYOUT_UNITS['safepay-raast'] !== 0) return notSent('Safepay is paid in whole rupees')
      const body = { request_id: attemptId, amount: String(amount / 100), creditor_iban: iban }
      const secrets = [options.secretKey, iban]
      return call('payout', () => api.post('payout', body), { request_id: attemptId }, secrets)
    },
    findInvoices: (keys) => find('invoice', keys),
    findPayouts: (keys) => find('payout', keys),
    accountTitle: (iban) => ask('title-fetch', { iban }, titleSchema, readTitle, [iban]),
    balance: () => ask('ledger/accounts', {}, balanceSchema, readBalance),
    undelivered,
    listRecords,
    close: () => api.close(),
  }
}

type UndeliveredEvent = Extract<UndeliveredOutcome, { kind: 'found' }>['events'][number]

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

/** The outcome of a POST, by the table at `CallOutcome` and the status in the answer. */
function readCallAnswer(kind: AttemptKind, answer: HttpAnswer, echo: Echo, now: number): CallOutcome {
  const { status } = answer
  if (status !== 200 && status !== 201) return outcomeOfRefusal(answer, describeError(answer), now)
  const created = createdSchema.safeParse(answer.body)
  if (!created.success) {
    return { kind: 'unknown', detail: `answered ${status} without a readable token and status` }
  }
  const { token: id, status: word, order_id, request_id } = created.data.data
  const isOurs =
    (!request_id || request_id === echo.request_id) &&
    (!order_id || echo.order_id === undefined || order_id === echo.order_id)
  if (!isOurs) return { kind: 'unknown', detail: `answered ${status} about another request` }
  const detail = describeAnswer(status, word)
  switch (outcomeOfStatus(kind, word)) {
    case 'created':
      return { kind: 'created', id, hostedUrl: null }
    case 'refused':
      return { kind: 'refused', status, detail, id }
    case 'unknown':
      return { kind: 'unknown', detail }
  }
}

const amountText = z.union([z.string(), z.number()]).transform(String)
const payment = z.object({ token: plainText, request_id: z.string(), amount: amountText, status: plainText })

function listOf<Item>(item: z.ZodType<Item>) {
  return z.object({
    data: z.object({
      count: z.union([z.string().regex(/^\d{1,9}$/), z.int().nonnegative()]).transform(Number),
      payments: z
        .array(item)
        .max(PAGE)
        .nullish()
        .transform((payments) => payments ?? []),
    }),
  })
}

const listSchema = listOf(payment)

interface Asked {
  kind: AttemptKind
  reference: string
  attemptId: string
  unit: 'rupees' | 'paisa'
}

/**
 * The payments under one request id. An answer that lists another id, or fewer payments than it counts, is unusable: then neither its
 * payments nor their absence say anything about ours.
 */
function readPayments(
  { count, payments }: z.infer<typeof listSchema>['data'],
  { kind, reference, attemptId, unit }: Asked,
): LookupOutcome {
  if (count !== payments.length)
    return unavailable('the look-up answered another number of payments than it counts')
  const items: LookupItem[] = []
  for (const payment of payments) {
    if (payment.request_id !== attemptId) {
      return unavailable('the look-up answered other request ids than the requested one')
    }
    const amount = readAmount(payment.amount, kind === 'payout' ? unit : 'paisa')
    if (amount === null) return unavailable('the look-up answered an unreadable amount')
    items.push({
      id: payment.token,
      reference,
      amount,
      currency: CURRENCY,
      status: portStatus(kind, payment.status),
    })
  }
  return { kind: 'found', items }
}

const recordsSchema = listOf(
  payment.extend({
    request_id: z.string().nullish(),
    type: plainText.nullish(),
    created_at: z.iso.datetime({ offset: true }),
  }),
)

/** One page of a list. `count` is the number of payments on all of its pages. */
function readRecords(
  { count, payments }: z.infer<typeof recordsSchema>['data'],
  offset: number,
  payoutUnit: 'rupees' | 'paisa',
): RecordsOutcome {
  if (payments.length === 0 && offset < count) {
    return unavailable('the list of payments has fewer than it counts')
  }
  const records = payments.map(
    ({ token, request_id, type, amount, status, created_at }): HeldRecord => ({
      id: token,
      attemptId: request_id || null,
      type: type ?? 'unknown',
      amount: readAmount(amount, type === PAYOUT_TYPE ? payoutUnit : 'paisa'),
      status,
      at: created_at,
    }),
  )
  return { kind: 'found', records, isLast: offset + payments.length >= count }
}

/** The status in the words of the port; Safepay's own word where its meaning is unclear. */
function portStatus(kind: AttemptKind, status: string): string {
  const meaning = statusMeaning(kind, status)
  return meaning === 'unclear' ? status : meaning
}

function readAmount(text: string, unit: 'rupees' | 'paisa'): Paisa | null {
  if (unit === 'rupees') {
    const amount = parseMoney(text)
    return amount !== null && amount >= 0 ? amount : null
  }
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

const titleSchema = z.object({
  data: z.object({ statusCode: z.number().optional(), acctitle: z.string().max(500) }),
})

function readTitle({ data: { statusCode = 0, acctitle } }: z.infer<typeof titleSchema>): TitleOutcome {
  if (statusCode !== 0 || acctitle.trim() === '')
    return unavailable(`the bank gave no account title (status ${statusCode})`)
  return { kind: 'found', title: acctitle.toWellFormed().replace(/\p{Cc}+/gu, ' ') }
}

const ledgerAccount = z.object({ currency: z.string(), balance: amountText })
const balanceSchema = z.object({
  data: z.union([ledgerAccount.transform((account) => [account]), z.array(ledgerAccount)]),
})

/** The aggregator's balance in paisa. The answer is one account, or a list of them. */
function readBalance({ data }: z.infer<typeof balanceSchema>): BalanceOutcome {
  const balances = data
    .filter(({ currency }) => currency === CURRENCY)
    .map(({ balance }) => (/^-?\d{1,15}$/.test(balance) ? Number(balance) : null))
  const [balance] = balances
  if (balances.length !== 1 || typeof balance !== 'number') {
    return unavailable('the ledger does not show one balance in PKR')
  }
  return { kind: 'known', amount: balance }
}

const endpointsSchema = z.object({
  data: z.object({ endpoints: z.array(z.object({ token: plainText })).nullish() }),
})

const deliveriesSchema = z.object({
  data: z.object({
    deliveries: z
      .array(z.object({ event_id: plainText, type: plainText, created_at: z.iso.datetime({ offset: true }) }))
      .nullish(),
  }),
})

function readDeliveries({ data }: z.infer<typeof deliveriesSchema>): UndeliveredOutcome & { kind: 'found' } {
  const events = (data.deliveries ?? []).map(({ event_id: id, type, created_at: at }) => ({ id, type, at }))
  return { kind: 'found', events }
}
