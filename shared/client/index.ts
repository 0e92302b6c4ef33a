import {
  createTRPCClientProxy,
  createTRPCUntypedClient,
  httpBatchLink,
  httpLink,
  httpSubscriptionLink,
  splitLink,
} from '@trpc/client'
import { EventSource } from 'eventsource'
import type { AppRouter } from './api.ts'
import { limitedCalls } from './limited-calls.ts'
import type { CallOptions, MarketplaceClient } from './procedures.ts'

export { ERROR_STATUS, type ErrorCode, type Problem } from '../error-codes.ts'
export { CREATOR_EVENTS, type EventName, MERCHANT_EVENTS } from '../events.ts'
export { CURRENCY, displayMoney, formatMoney, type Paisa, parseMoney } from '../money.ts'
export { type BasisPoints, basisPointsToPercent, percentToBasisPoints } from '../rates.ts'
export type { RejectionReason } from '../rejection-reasons.ts'
export type * from './api.ts'
export { isRefusal, problemIn, type RefusedCall, retryAfter } from './problems.ts'
export type {
  Call,
  CallOptions,
  Inputs,
  MarketplaceClient,
  Outputs,
  StreamHandlers,
  Subscription,
} from './procedures.ts'

export {
  verifyWebhook,
  type WebhookData,
  type WebhookEvent,
  type WebhookRequest,
  WebhookVerificationError,
} from './webhooks.ts'

export interface ClientOptions {
  /** The address of the service: `https://affiliates.example.pk`. */
  url: string
  /** The bearer token of a session; a function is called before each request. Without a token, only public calls work. */
  token?: string | (() => string | null | undefined) | undefined
  /** The API key of a program, in place of `token`. */
  apiKey?: string | undefined
  /**
   * For a page that the service itself serves: the session is in a cookie, which no script can read. Log in without `token`;
   * the session's `token` is empty.
   */
  session?: 'cookie' | undefined
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined
  /** How often a call that changes nothing is repeated after 429 and 503, once their `Retry-After` has passed; 2 by default. */
  retries?: number | undefined
  /** How long each attempt may take, ms; 30,000 by default. Streams have no limit. */
  timeout?: number | undefined
}

/** The service's limit of calls in one request, and a length of address that every proxy accepts. */
const MAX_CALLS = 10
const MAX_URL_LENGTH = 2000

/**
 * Creates a typed client of the service. Calls made at the same time are sent in one request. A failed call throws an
 * error; a subscription passes it to `onError`. `problemIn` finds what the service said in it.
 */
export function createClient(options: ClientOptions): MarketplaceClient {
  if (!/^https?:\/\//i.test(options?.url ?? '')) {
    throw new TypeError(
      'url is missing: pass the address of the service, such as https://affiliates.example.pk',
    )
  }
  const { token, apiKey, session, fetch, retries = 2, timeout = 30_000 } = options
  const url = `${options.url.replace(/\/+$/, '')}/trpc`
  const credential = (): Record<string, string> => {
    const shown = apiKey ?? (typeof token === 'function' ? token() : token)
    if (shown) return { authorization: `Bearer ${shown}` }
    return session ? { 'x-session': session } : {}
  }
  const calls = httpBatchLink<AppRouter>({
    url,
    maxItems: MAX_CALLS,
    maxURLLength: MAX_URL_LENGTH,
    ...(fetch && { fetch }),
    headers: credential,
  })
  // A key belongs to one call, so that is sent alone.
  const keyOf = ({ context }: { context: Record<string, unknown> }) => context.idempotencyKey
  const keyed = httpLink<AppRouter>({
    url,
    ...(fetch && { fetch }),
    headers: ({ op }) => ({ ...credential(), 'idempotency-key': String(keyOf(op)) }),
  })
  // Not the browser's own EventSource, which can send no headers.
  const streams = httpSubscriptionLink<AppRouter, typeof EventSource>({
    url,
    EventSource,
    eventSourceOptions: {
      fetch: (address, init) =>
        (fetch ?? globalThis.fetch)(address, { ...init, headers: { ...init.headers, ...credential() } }),
    },
  })
  const isStream = ({ type }: { type: string }) => type === 'subscription'
  const hasKey = (op: { context: Record<string, unknown> }) => keyOf(op) !== undefined
  const limited = [
    limitedCalls({ retries, timeout }),
    splitLink({ condition: hasKey, true: keyed, false: calls }),
  ]
  const client = createTRPCUntypedClient<AppRouter>({
    links: [splitLink({ condition: isStream, true: streams, false: limited })],
  })
  const mutation = client.mutation.bind(client)
  client.mutation = (path, input, { idempotencyKey, ...options }: CallOptions & { context?: object } = {}) =>
    mutation(path, input, { ...options, context: { idempotencyKey } })
  const withPages: unknown = new Proxy(createTRPCClientProxy(client), {
    get: (target, name) => (name === 'pages' ? pages : Reflect.get(target, name)),
  })
  return withPages as MarketplaceClient
}

/** The most that a list answers at a time. */
const FULL_PAGE = 100

async function* pages(
  list: {
    query(input: object, options?: CallOptions): Promise<{ items: unknown[]; next_cursor: string | null }>
  },
  input?: object,
  options?: CallOptions,
): AsyncGenerator<unknown> {
  let cursor: string | null = null
  do {
    const page = await list.query({ limit: FULL_PAGE, ...input, ...(cursor && { cursor }) }, options)
    yield* page.items
    cursor = page.next_cursor
  } while (cursor !== null)
}
