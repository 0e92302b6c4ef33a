import { z } from 'zod'

/*
 * What Safepay Raast accepts, written from its published facts. A request with anything else is a fault of the adapter.
 */

const requestId = z.string().min(1).max(100)
const iban = z.string().regex(/^PK\d{2}[A-Z]{4}[A-Z0-9]{16}$/)

const payment = z
  .strictObject({
    request_id: requestId,
    amount: z.int().positive(),
    aggregator_merchant_identifier: z.string().min(1),
    order_id: z.string().min(1),
    type: z.literal('RTP_LATER'),
    expiry_in_days: z.int().min(1).max(40),
    debitor_iban: iban.optional(),
    debitor_raast_id: z
      .string()
      .regex(/^03\d{9}$/)
      .optional(),
  })
  .refine(
    (body) => (body.debitor_iban === undefined) !== (body.debitor_raast_id === undefined),
    'exactly one of debitor_iban and debitor_raast_id',
  )

/** The documents leave fractions of a rupee open, so the adapter sends none. */
const payout = z.strictObject({
  request_id: requestId,
  amount: z.string().regex(/^[1-9]\d*$/),
  creditor_iban: iban,
})

const webhook = z.strictObject({
  url: z.url(),
  description: z.string().optional(),
  event_types: z.array(z.string().regex(/^(payment|settlement|refund)\.[a-z_]+$/)).min(1),
  enabled: z.boolean().optional(),
})

const page = { limit: z.string().regex(/^\d+$/), offset: z.string().regex(/^\d+$/) }
/** A UNIX timestamp. */
const seconds = z.string().regex(/^\d{10}$/)
const none = z.strictObject({})

interface RequestRule {
  method: string
  /** Below `/v1/aggregators/{id}/`. */
  path: RegExp
  query: z.ZodType
  body: z.ZodType
}

const RULES: RequestRule[] = [
  { method: 'POST', path: /^payments$/, query: none, body: payment },
  { method: 'POST', path: /^payout$/, query: none, body: payout },
  {
    method: 'GET',
    path: /^payments$/,
    query: z.union([
      z.strictObject({ ...page, request_id: requestId }),
      z.strictObject({ ...page, start_date: seconds, end_date: seconds }),
    ]),
    body: z.null(),
  },
  { method: 'GET', path: /^title-fetch$/, query: z.strictObject({ iban }), body: z.null() },
  { method: 'GET', path: /^ledger\/accounts$/, query: none, body: z.null() },
  { method: 'GET', path: /^merchants\/[^/]+$/, query: none, body: z.null() },
  { method: 'GET', path: /^webhooks$/, query: z.strictObject(page), body: z.null() },
  { method: 'POST', path: /^webhooks$/, query: none, body: webhook },
  { method: 'PUT', path: /^webhooks\/[^/]+$/, query: none, body: webhook.partial() },
  { method: 'PUT', path: /^webhooks\/[^/]+\/rotate$/, query: none, body: z.null() },
  {
    method: 'GET',
    path: /^webhooks\/[^/]+\/deliveries$/,
    query: z.strictObject({ ...page, status: z.literal('WD_DEAD') }),
    body: z.null(),
  },
]

export interface SafepayRequest {
  method: string
  path: string
  query: Record<string, string>
  body: unknown
}

/** What is wrong with a request; `null` if nothing is. */
export function requestProblem({ method, path, query, body }: SafepayRequest): string | null {
  const rule = RULES.find((one) => one.method === method && one.path.test(path))
  if (!rule) return `${method} ${path} is none of its routes`
  for (const [what, schema, value] of [
    ['query', rule.query, query],
    ['body', rule.body, body],
  ] as const) {
    const parsed = schema.safeParse(value)
    if (!parsed.success) return `${method} ${path}: ${what}: ${z.prettifyError(parsed.error)}`
  }
  return null
}
