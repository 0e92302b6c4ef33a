import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { requestProblem, type SafepayRequest } from './safepay-requests.ts'

export const AGGREGATOR_ID = 'agg_double'
export const MERCHANT_ID = 'am_double'
export const SECRET_KEY = 'sk_test_double-0000'

/** Where its documents contradict each other or say nothing: each can be switched to the other reading. */
export interface SafepaySwitches {
  /** Errors in an envelope or flat. */
  errors: 'envelope' | 'flat'
  /** The unit of payout amounts in records and events. */
  payoutUnit: 'rupees' | 'paisa'
  /** How it answers a request id that it knows. */
  repeated: 'conflict' | 'same'
  /** How it lists no payments. */
  nothing: 'empty' | 'null' | 'absent'
  /** Whether the ledger is one account or a list. */
  ledger: 'account' | 'list'
  /** Whether amounts in records are text or numbers. */
  amounts: 'text' | 'number'
  /** The status that new requests get. */
  status: string
}

const DEFAULTS: SafepaySwitches = {
  errors: 'envelope',
  payoutUnit: 'rupees',
  repeated: 'conflict',
  nothing: 'empty',
  ledger: 'account',
  amounts: 'text',
  status: 'P_INITIATED',
}

export interface SafepayPayment {
  token: string
  requestId: string
  orderId: string
  type: 'RTP_LATER' | 'PAYOUT'
  /** Paisa. */
  amount: number
  status: string
  /** Epoch ms. */
  createdAt: number
  /** The body of the request. */
  body: Record<string, unknown>
}

/** What a request is answered with in place of the normal answer, without effect. */
export interface Instead {
  status: number
  body: string
  headers?: Record<string, string>
}

export interface SafepayEvent {
  identifier: string
  webhook_event_type: string
  aggregator_id: string
  subject: { payment: Record<string, unknown> }
}

/** Not Safepay's: a POST to it makes the next payout fail. */
export const FAIL_NEXT_PAYOUT = '/double/fail-next-payout'

/** Safepay Raast with a ledger of its own, as published. It checks every request against the published facts. */
export class SafepayDouble {
  readonly switches: SafepaySwitches = { ...DEFAULTS }
  readonly payments: SafepayPayment[] = []
  readonly requests: SafepayRequest[] = []
  /** Requests that the published facts do not allow. */
  readonly complaints: string[] = []
  /** Answers of the next requests, by method and path; normal once it is empty. */
  readonly instead = new Map<string, Instead[]>()
  /** Titles of accounts by IBAN. */
  readonly titles = new Map<string, string>()
  title = 'A CREATOR'
  /** Paisa. */
  balance = 1_000_000_000
  readonly endpoints: {
    token: string
    url: string
    enabled: boolean
    event_types: string[]
    secret: string
  }[] = []
  readonly dead: { event_id: string; type: string; created_at: string }[] = []
  /** Settles what is new after so many ms, and sends the events; `null`: only when a test does. */
  settlesAfterMs: number | null = null
  /** Whether the next payout that it settles by itself fails. */
  failsNextPayout = false
  readonly #closing = new AbortController()
  url = ''
  /** Epoch ms. */
  now: () => number = Date.now
  #close = async () => {}

  /** `port`: 0 for any. */
  static async open(port = 0): Promise<SafepayDouble> {
    const double = new SafepayDouble()
    // A connection that it closed while a busy machine stood still would look like a fault.
    const server = createServer({ keepAliveTimeout: 0 }, (asked, answer) => {
      double.#serve(asked, answer).catch((error: unknown) => {
        double.complaints.push(String(error))
        answer.destroy()
      })
    })
    await once(server.listen(port, '127.0.0.1'), 'listening')
    double.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/raastwire`
    double.#close = async () => {
      double.#closing.abort()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    return double
  }

  close(): Promise<void> {
    return this.#close()
  }

  /** The events that a change of status sends, and the change. */
  settle(payment: SafepayPayment, word: 'paid' | 'failed' | 'rejected' | 'reversed'): SafepayEvent[] {
    payment.status = word === 'paid' ? 'P_SETTLED' : `P_${word.toUpperCase()}`
    const types = word === 'paid' ? ['payment.completed', 'payment.settled'] : [`payment.${word}`]
    return types.map((type) => this.eventAbout(payment, type))
  }

  /**
   * Delivers events to the registered endpoints, signed, each in this order; what is not answered with 2xx is dead. Answers the
   * statuses, 0 for no answer.
   */
  async deliver(events: readonly SafepayEvent[]): Promise<number[]> {
    const statuses = this.endpoints.map(async (endpoint) => {
      const answered: number[] = []
      for (const event of events) {
        if (!endpoint.enabled || !endpoint.event_types.includes(event.webhook_event_type)) continue
        const status = await this.#send(endpoint, event)
        answered.push(status)
        const { identifier: event_id, webhook_event_type: type } = event
        if (status < 200 || status >= 300)
          this.dead.push({ event_id, type, created_at: new Date(this.now()).toISOString() })
      }
      return answered
    })
    return (await Promise.all(statuses)).flat()
  }

  async #send({ url, secret }: (typeof this.endpoints)[number], event: SafepayEvent): Promise<number> {
    const body = JSON.stringify(event)
    const now = new Date(this.now()).toISOString().replace('Z', '123456Z')
    const mac = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${now}.${body}`).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'x-sfpy-event-id': event.identifier,
      'x-sfpy-timestamp': now,
      'x-sfpy-signature': `sha256=${mac}`,
    }
    const answer = await fetch(url, { method: 'POST', headers, body }).catch(() => null)
    return answer?.status ?? 0
  }

  /** As a payer, a bank and a network do that take no time and agree to everything. */
  async #settleByItself(payment: SafepayPayment, afterMs: number): Promise<void> {
    const isFailing = payment.type === 'PAYOUT' && this.failsNextPayout
    if (isFailing) this.failsNextPayout = false
    const { signal } = this.#closing
    await pause(afterMs, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await this.deliver(this.settle(payment, isFailing ? 'failed' : 'paid'))
  }

  eventAbout(payment: SafepayPayment, type: string): SafepayEvent {
    return {
      identifier: `txnlog_${randomUUID()}`,
      webhook_event_type: type,
      aggregator_id: AGGREGATOR_ID,
      subject: { payment: this.#record(payment) },
    }
  }

  #record(payment: SafepayPayment): Record<string, unknown> {
    const { payoutUnit, amounts } = this.switches
    const isRupees = payment.type === 'PAYOUT' && payoutUnit === 'rupees'
    const amount = isRupees ? payment.amount / 100 : payment.amount
    return {
      token: payment.token,
      aggregator_id: AGGREGATOR_ID,
      order_id: payment.orderId,
      type: payment.type,
      amount: amounts === 'text' ? String(amount) : amount,
      status: payment.status,
      ...this.#references(),
      request_id: payment.requestId,
      created_at: new Date(payment.createdAt).toISOString(),
      txn_logs: [],
    }
  }

  #references() {
    return { uetr: randomUUID(), msg_id: randomUUID(), trace_reference: randomUUID() }
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(asked.url ?? '/', 'http://double')
    const raw = await text(asked)
    if (asked.method === 'POST' && url.pathname === FAIL_NEXT_PAYOUT) {
      this.failsNextPayout = true
      answer.writeHead(204).end()
      return
    }
    const [isItsRoute, aggregator, path = ''] =
      /^\/raastwire\/v1\/aggregators\/([^/]+)\/(.*)$/.exec(decodeURIComponent(url.pathname)) ?? []
    if (isItsRoute === undefined) {
      answer.writeHead(404, { 'content-type': 'text/html' }).end('<html>404 Not Found</html>')
      return
    }
    const request: SafepayRequest = {
      method: asked.method ?? '',
      path,
      query: Object.fromEntries(url.searchParams),
      body: raw === '' ? null : JSON.parse(raw),
    }
    this.requests.push(request)
    const problem = requestProblem(request)
    if (problem !== null) this.complaints.push(problem)
    const { status, body, headers } =
      this.instead.get(`${request.method} ${path}`)?.shift() ??
      this.#answer(asked.headers['x-sfpy-aggregator-secret-key'], aggregator, request)
    answer.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }

  #answer(key: unknown, aggregator: string | undefined, request: SafepayRequest): Instead {
    if (key !== SECRET_KEY) return this.#error(401, 'error.unauthorized_access', 'invalid access key')
    if (aggregator !== AGGREGATOR_ID) return this.#error(404, 'error.not_found', 'aggregator not found')
    const { method, path, query } = request
    const body = (request.body ?? {}) as Record<string, unknown>
    if (method === 'POST' && path === 'payments') return this.#create('RTP_LATER', body)
    if (method === 'POST' && path === 'payout') return this.#create('PAYOUT', body)
    if (path === 'payments') return this.#list(query)
    if (path === 'title-fetch') {
      const acctitle = this.titles.get(query.iban ?? '') ?? this.title
      return this.#data({ statusCode: 0, acctitle, acctype: 'Account' })
    }
    if (path === 'ledger/accounts') {
      const account = { account_type: 'ACCT_AGGREGATOR', currency: 'PKR', balance: String(this.balance) }
      return this.#data(this.switches.ledger === 'list' ? [account] : account)
    }
    if (path === `merchants/${MERCHANT_ID}`)
      return this.#data({ aggregator_merchant_identifier: MERCHANT_ID })
    if (path.startsWith('merchants/')) return this.#error(404, 'error.not_found', 'merchant not found')
    return this.#webhooks(method, path, body)
  }

  #create(type: SafepayPayment['type'], body: Record<string, unknown>) {
    const requestId = String(body.request_id)
    const known = this.payments.find((payment) => payment.requestId === requestId)
    if (known && JSON.stringify(known.body) !== JSON.stringify(body)) {
      this.complaints.push(`request ${requestId} came with two bodies`)
    }
    if (known && this.switches.repeated === 'conflict') {
      return this.#error(409, 'error.conflict', 'Resource already exists')
    }
    const payment = known ?? {
      token: `pm_${randomUUID()}`,
      requestId,
      orderId: type === 'PAYOUT' ? '' : String(body.order_id),
      type,
      amount: type === 'PAYOUT' ? Number(body.amount) * 100 : Number(body.amount),
      status: this.switches.status,
      createdAt: this.now(),
      body,
    }
    if (!known) {
      this.payments.push(payment)
      if (this.settlesAfterMs !== null) void this.#settleByItself(payment, this.settlesAfterMs)
    }
    const { token, status, orderId: order_id } = payment
    const created = {
      token,
      status,
      order_id,
      created_at: new Date(payment.createdAt).toISOString(),
      ...this.#references(),
    }
    return this.#data(type === 'PAYOUT' ? this.#record(payment) : { message: 'RTP created', ...created })
  }

  /** Newest first; `count` is that of all pages. */
  #list({ request_id, start_date = '0', end_date, limit, offset }: Record<string, string>) {
    const end = end_date === undefined ? Number.POSITIVE_INFINITY : Number(end_date)
    const all = this.payments.filter(({ requestId, createdAt }) => {
      const at = Math.floor(createdAt / 1000)
      return (request_id === undefined || requestId === request_id) && at >= Number(start_date) && at <= end
    })
    const from = Number(offset)
    const payments = all.reverse().slice(from, from + Number(limit))
    const { nothing } = this.switches
    if (all.length > 0 || nothing === 'empty') {
      const page = payments.map((payment) => this.#record(payment))
      return this.#data({ count: String(all.length), payments: page })
    }
    return this.#data(nothing === 'null' ? { count: '0', payments: null } : { count: '0' })
  }

  #webhooks(method: string, path: string, body: Record<string, unknown>) {
    const [, token, rest] = /^webhooks\/([^/]+)(?:\/(.+))?$/.exec(path) ?? []
    const shown = ({ event_types, ...endpoint }: (typeof this.endpoints)[number]) => ({
      ...endpoint,
      event_filter_json: JSON.stringify(event_types),
    })
    if (method === 'POST') {
      const secret = Buffer.from(randomUUID()).toString('base64')
      const endpoint = {
        token: `wh_${randomUUID()}`,
        url: String(body.url),
        enabled: body.enabled !== false,
        event_types: body.event_types as string[],
        secret,
      }
      this.endpoints.push(endpoint)
      return this.#data({ endpoint: shown(endpoint), secret })
    }
    if (token === undefined) {
      return this.#data({ endpoints: this.endpoints.map(shown), count: String(this.endpoints.length) })
    }
    const endpoint = this.endpoints.find((one) => one.token === token)
    if (!endpoint) return this.#error(404, 'error.not_found', 'webhook not found')
    if (rest === 'deliveries') {
      return this.#data({ deliveries: this.dead, count: String(this.dead.length) })
    }
    if (rest === 'rotate') {
      endpoint.secret = Buffer.from(randomUUID()).toString('base64')
      return this.#data({
        endpoint: shown(endpoint),
        secret: endpoint.secret,
        rotated_at: new Date().toISOString(),
      })
    }
    if (Array.isArray(body.event_types)) endpoint.event_types = body.event_types as string[]
    if (typeof body.enabled === 'boolean') endpoint.enabled = body.enabled
    return this.#data({ endpoint: shown(endpoint) })
  }

  #data(data: unknown) {
    return { status: 200, body: JSON.stringify({ api_version: 'v1', data }) }
  }

  #error(status: number, code: string, message: string) {
    const error = { code, message }
    const body = this.switches.errors === 'flat' ? error : { api_version: 'v1', error }
    return { status, body: JSON.stringify(body) }
  }
}
