import type { EVENTS, EventName } from '../events.ts'
import type { Outputs } from './procedures.ts'

type Sale = Omit<Outputs['sales']['list']['items'][number], 'offer' | 'creator' | 'store'>
type Application = Outputs['applications']['decide']
type BillingCycle = Outputs['billing']['listCycles']['items'][number]
type Payout = Outputs['payouts']['list']['items'][number]
type Account = Outputs['users']['me']

/** What `data` can hold. */
interface Data {
  application: Application
  link: Omit<Outputs['links']['resolve'], 'coupon_code'> & { ended_at: string; end_reason: string | null }
  sale: Sale
  credit_request: Outputs['sales']['requestCredit']
  pending_order: Outputs['pendingOrders']['list']['items'][number]
  billing_cycle: BillingCycle
  store: Outputs['stores']['get']
  release: { billing_cycle_id: string; amount: string; currency: 'PKR' }
  payout: Payout
  destination: Pick<Account, 'payout_destination' | 'upcoming_payout_destination'>
}

/** What `data` holds, by the event's `type`. */
export type WebhookData = { [Type in EventName]: Data[(typeof EVENTS)[Type]['data']] } & {
  'webhook.test': { endpoint_id: string }
}

/** A verified event. Compare `type` to get the type of `data`. */
export type WebhookEvent = {
  [Type in keyof WebhookData]: {
    /** The same each time the event is sent: ignore an id that you have processed. */
    id: string
    type: Type
    /** When it happened, RFC 3339. */
    timestamp: string
    data: WebhookData[Type]
  }
}[keyof WebhookData]

export interface WebhookRequest {
  /** Of the request: `Headers`, or an object such as Node's `request.headers`; names in any case, values one or several. */
  headers: Headers | Record<string, string | readonly string[] | undefined>
  /** The raw body, before any JSON parser. */
  body: string | Uint8Array
  /** The endpoint's secret, `whsec_...`; several while one is replaced. */
  secret: string | readonly string[]
  /** How far the signature's time may be from now, seconds; 300 by default. */
  tolerance?: number | undefined
}

/** A request that the service did not send, or sent too long ago. Answer it with 400. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

const DEFAULT_TOLERANCE_S = 300
const PREFIX = 'v1,'
const ALGORITHM = { name: 'HMAC', hash: 'SHA-256' }

/**
 * Verifies a webhook's signature (Standard Webhooks) and returns the event. Throws `WebhookVerificationError` if no secret matches, a
 * header is missing, or the signature is too old; `TypeError` without a raw body, headers or a secret.
 */
export async function verifyWebhook(request: WebhookRequest): Promise<WebhookEvent> {
  refuseMisuse(request)
  const id = headerOf(request, 'webhook-id')
  const timestamp = headerOf(request, 'webhook-timestamp')
  const signatures = headerOf(request, 'webhook-signature', ' ').split(' ')
  const { tolerance = DEFAULT_TOLERANCE_S } = request
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance)) {
    throw new WebhookVerificationError('webhook-timestamp is too far from now')
  }
  const body = typeof request.body === 'string' ? new TextEncoder().encode(request.body) : request.body
  const signed = await new Blob([`${id}.${timestamp}.`, body as Uint8Array<ArrayBuffer>]).arrayBuffer()
  const secrets = typeof request.secret === 'string' ? [request.secret] : request.secret
  for (const secret of secrets) {
    const key = await keyOf(secret)
    for (const signature of signatures) {
      const mac = signature.startsWith(PREFIX) ? fromBase64(signature.slice(PREFIX.length)) : null
      if (mac && (await crypto.subtle.verify(ALGORITHM, key, mac, signed))) return eventOf(id, body)
    }
  }
  throw new WebhookVerificationError('no signature matches the secret')
}

/** Throws `TypeError` for what callers without types get wrong. */
function refuseMisuse({ headers, body, secret }: Partial<WebhookRequest>): void {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError(
      'body must be the raw body as text or bytes, as it came: a body that a JSON parser has read cannot be verified',
    )
  }
  if (!headers) throw new TypeError('headers is missing: pass the headers of the request')
  if (secret === undefined || secret === '')
    throw new TypeError('secret is missing: pass the whsec_... of the endpoint')
}

/** A header, its name in any case. Of several values, joined by `separator`; without one they are refused. */
function headerOf({ headers }: WebhookRequest, name: string, separator?: string): string {
  const given =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? (value ?? []) : []))
  const values = [given ?? []].flat()
  const value = separator === undefined && values.length > 1 ? '' : values.join(separator)
  if (value !== '') return value
  throw new WebhookVerificationError(`the header ${name} is missing`)
}

async function keyOf(secret: string) {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  // An empty key would verify what anyone can sign.
  if (!bytes || bytes.length === 0) throw new TypeError('the secret is not of the form whsec_<base64>')
  return crypto.subtle.importKey('raw', bytes, ALGORITHM, false, ['verify'])
}

/** `null` for a text that is not base64. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}

function eventOf(id: string, body: Uint8Array): WebhookEvent {
  return { id, ...JSON.parse(new TextDecoder().decode(body)) }
}
