import type { LookupFunction } from 'node:net'
import { type OutgoingCalls, openOutgoingCalls } from '../../../platform/network/outgoing-calls.ts'
import {
  type AddressRule,
  isAllowedAddress,
  PrivateAddress,
  publicLookup,
} from '../../../platform/network/public-address.ts'
import { UNPRINTABLE } from '../../../platform/printable.ts'
import { standardWebhooks } from '../../../processor/signatures/choose-scheme.ts'

const TIMEOUT_MS = 15_000
const CONNECT_TIMEOUT_MS = 10_000
/** How much of a response is read and kept. */
const MAX_BODY_BYTES = 2048

interface WebhookRequest {
  url: string
  /** The id of the event. */
  eventId: string
  body: string
  /** All valid secrets, the present one first. */
  secrets: readonly string[]
  /** Epoch ms. */
  now: number
}

/** What an endpoint answered; the status decides, however the body ends. */
export interface WebhookOutcome {
  /** `null` without a response. */
  status: number | null
  retryAfter: string | null
  /** The start of the response, in one line. */
  body: string | null
  /** What went wrong, for people; `null` for a 2xx. */
  error: string | null
}

export interface WebhookSender {
  /** Never throws. Follows no redirect. */
  send(request: WebhookRequest): Promise<WebhookOutcome>
  /** Ends the attempts under way. */
  close(): Promise<void>
}

interface SenderOptions {
  /** By default `publicLookup(rule)`. */
  lookup?: LookupFunction
  /** For the whole attempt, from connecting to the end of the response. */
  timeoutMs?: number
}

/** Sends signed events to addresses that the rule allows, as resolved at each connection. */
export function createWebhookSender(
  rule: AddressRule,
  { lookup = publicLookup(rule), timeoutMs = TIMEOUT_MS }: SenderOptions = {},
): WebhookSender {
  const calls = openOutgoingCalls({ connect: { lookup, timeout: CONNECT_TIMEOUT_MS } })
  return {
    async send(request) {
      try {
        refuseLiteral(request.url, rule)
        return await attempt(calls, timeoutMs, request)
      } catch (error) {
        return { status: null, retryAfter: null, body: null, error: describe(error) }
      }
    },
    close: () => calls.close(),
  }
}

/** An address in the URL is not looked up. */
function refuseLiteral(url: string, rule: AddressRule): void {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  if (/^[\d.]+$|:/.test(host) && !isAllowedAddress(host, rule)) throw new PrivateAddress()
}

async function attempt(
  calls: OutgoingCalls,
  timeoutMs: number,
  request: WebhookRequest,
): Promise<WebhookOutcome> {
  const options = { method: 'POST', headers: headersOf(request), body: request.body } as const
  const response = await calls.request(request.url, options, timeoutMs)
  const { statusCode: status, headers } = response
  const retryAfter = headers['retry-after']
  const isSuccess = status >= 200 && status < 300
  return {
    status,
    retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    body: await startOf(response.body),
    error: isSuccess
      ? null
      : `The endpoint answered ${status}${isRedirect(status) ? '; redirects are not followed' : ''}.`,
  }
}

function headersOf({ eventId, body, secrets, now }: WebhookRequest): Record<string, string> {
  const signed = secrets.map((secret) =>
    standardWebhooks.sign({ deliveryId: eventId, rawBody: Buffer.from(body), secret, now }),
  )
  return {
    'content-type': 'application/json',
    'user-agent': 'affiliate-webhooks',
    ...signed[0],
    'webhook-signature': signed.map((headers) => headers['webhook-signature']).join(' '),
  }
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

/** The first bytes of a response as printable text in one line. A response that breaks off or takes too long ends there. */
async function startOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of stream) {
      chunks.push(chunk)
      size += chunk.length
      // Leaving the loop closes the connection.
      if (size >= MAX_BODY_BYTES) break
    }
  } catch {
    // What arrived is enough for the log.
  }
  const text = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8')
  return text.replace(/\s+/g, ' ').replace(UNPRINTABLE, '\ufffd').trim()
}

const REASONS: Record<string, string> = {
  PRIVATE_ADDRESS: 'The host is not on the public internet.',
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was reset.',
  ENOTFOUND: 'The host name does not exist.',
  ENODATA: 'The host name has no address.',
  ESERVFAIL: 'The host name could not be resolved.',
  ETIMEOUT: 'The host name could not be resolved.',
  UND_ERR_CONNECT_TIMEOUT: 'No connection within 10 seconds.',
  UND_ERR_SOCKET: 'The connection was closed without a response.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the response are too large.',
}

/** The code of an error, never its text: that can name addresses of the service's own network. */
function describe(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'No response within 15 seconds.'
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return REASONS[code] ?? `The request failed${/^[A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : ''}.`
}
