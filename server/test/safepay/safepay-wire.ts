import { formatMoney, parseMoney } from '../../../shared/money.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { Reply } from '../faults/call-faults.ts'
import type { Wire } from '../faults/wire.ts'
import { requestProblem } from './safepay-requests.ts'

const STATUSES: Record<string, string> = {
  open: 'P_INITIATED',
  processing: 'P_RECEIVED',
  paid: 'P_SETTLED',
  failed: 'P_FAILED',
}
const TYPES: Record<string, string> = {
  'billing.payment_confirmed': 'payment.completed',
  'payout.confirmed': 'payment.settled',
  'payout.failed': 'payment.failed',
}

/** Safepay Raast on the wire, for the double that misbehaves as planned. Requests go by the attempt's id. */
export function safepayWire(db: Queries): Wire {
  const attemptOf = (id: string) =>
    db
      .selectFrom('processor_attempts')
      .select(['subject_id', 'kind'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
  return {
    async read({ method, url, text }) {
      const path = url.pathname.replace(/^\/v1\/aggregators\/[^/]+\//, '')
      const query = Object.fromEntries(url.searchParams)
      const body = text === '' ? null : JSON.parse(text)
      const problem = requestProblem({ method, path, query, body })
      if (problem) throw new Error(problem)
      if (path === 'title-fetch')
        return { what: 'other', reply: data({ statusCode: 0, acctitle: 'A CREATOR' }) }
      const key = String(method === 'POST' ? body.request_id : query.request_id)
      const { subject_id: reference, kind } = await attemptOf(key)
      if (method === 'GET') return { what: 'lookup', kind, reference, key }
      if ((path === 'payout') !== (kind === 'payout')) throw new Error(`a ${kind} was sent to ${path}`)
      const amount = kind === 'payout' ? `${body.amount}.00` : formatMoney(body.amount)
      const call = { reference, amount, currency: 'PKR', sent: text }
      return { what: 'call', kind, reference, key, body: JSON.stringify(call) }
    },
    write(reply, { what, kind, key }) {
      if (reply.kind !== 'send' || reply.status > 201) return reply
      let body: Record<string, unknown>
      try {
        body = JSON.parse(reply.body)
      } catch {
        return { ...reply, status: 200 }
      }
      if (what === 'call') {
        const { id, hosted_url: _page, ...rest } = body
        return data(id === undefined ? rest : { token: id, status: 'P_INITIATED', ...rest })
      }
      const items = body.items as unknown[]
      const payments = items.map((item) => (isRecord(item) ? paymentOf(kind, key, item) : item))
      return data({ count: String(payments.length), payments })
    },
    event(type, { invoice_id, amount, payment_reference }, identifier) {
      const isPayout = type !== 'billing.payment_confirmed'
      // Another payment reference cannot come with the same token: here it is a failure of what was paid.
      const contradicts = !isPayout && payment_reference === 'another payment'
      const payment = {
        token: invoice_id,
        type: isPayout ? 'PAYOUT' : 'RTP_LATER',
        amount: amountText(isPayout ? 'payout' : 'invoice', String(amount)),
        status: 'P_SETTLED',
      }
      return {
        identifier,
        webhook_event_type: contradicts ? 'payment.failed' : TYPES[type],
        aggregator_id: 'agg_double',
        subject: { payment },
      }
    },
  }
}

function isRecord(item: unknown): item is Record<string, unknown> {
  return typeof item === 'object' && item !== null
}

/** A payment for one item of the generic contract; of an unreadable item an unreadable one. */
function paymentOf(kind: 'invoice' | 'payout', key: string, item: Record<string, unknown>) {
  const { id: token, reference, amount, status } = item
  return {
    token,
    request_id: reference === 'not-asked-for' ? reference : key,
    ...(typeof amount === 'string' ? { amount: amountText(kind, amount) } : {}),
    status: STATUSES[String(status)],
  }
}

/** Requests are in paisa, payouts in rupees. */
function amountText(kind: 'invoice' | 'payout', rupees: string): string {
  return kind === 'payout' ? rupees : String(parseMoney(rupees))
}

function data(value: unknown): Reply {
  return {
    kind: 'send',
    status: 200,
    body: JSON.stringify({ api_version: 'v1', data: value }),
    headers: { 'content-type': 'application/json' },
  }
}
