import {
  createTRPCClient,
  httpBatchLink,
  httpSubscriptionLink,
  splitLink,
  TRPCClientError,
} from '@trpc/client'
import { EventSource } from 'eventsource'
import type { AppRouter } from '../../server/http/router.ts'
import type { ErrorCode, Problem } from '../error-codes.ts'
import type { MarketplaceClient } from './procedures.ts'

export { ERROR_STATUS, type ErrorCode, type Problem } from '../error-codes.ts'
export { CURRENCY, displayMoney, formatMoney, type Paisa, parseMoney } from '../money.ts'
export { type BasisPoints, basisPointsToPercent, percentToBasisPoints } from '../rates.ts'
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
  token?: string | (() => string | null | undefined)
  /** The API key of a program, in place of `token`. */
  apiKey?: string
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch
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
  const { token, apiKey, fetch } = options
  const url = `${options.url.replace(/\/+$/, '')}/trpc`
  const credential = (): Record<string, string> => {
    const shown = apiKey ?? (typeof token === 'function' ? token() : token)
    return shown ? { authorization: `Bearer ${shown}` } : {}
  }
  const calls = httpBatchLink<AppRouter>({
    url,
    maxItems: MAX_CALLS,
    maxURLLength: MAX_URL_LENGTH,
    ...(fetch && { fetch }),
    headers: credential,
  })
  // Not the browser's own EventSource, which can send no token.
  const streams = httpSubscriptionLink<AppRouter, typeof EventSource>({
    url,
    EventSource,
    eventSourceOptions: {
      fetch: (address, init) =>
        (fetch ?? globalThis.fetch)(address, { ...init, headers: { ...init.headers, ...credential() } }),
    },
  })
  const isStream = ({ type }: { type: string }) => type === 'subscription'
  const client: unknown = createTRPCClient<AppRouter>({
    links: [splitLink({ condition: isStream, true: streams, false: calls })],
  })
  return client as MarketplaceClient
}

/** What the service said about a failed call; `null` if the service did not answer (no network, for example). */
export function problemIn(error: unknown): Problem | null {
  if (!(error instanceof TRPCClientError)) return null
  return (error as TRPCClientError<AppRouter>).data?.problem ?? null
}

/** Whether a call was refused with one of these codes. */
export function isRefusal(error: unknown, ...codes: ErrorCode[]): boolean {
  const problem = problemIn(error)
  return problem !== null && codes.includes(problem.code)
}

/** Seconds to wait before another try (`rate_limited`, `unavailable`); `null` if the service named none. */
export function retryAfter(error: unknown): number | null {
  if (!(error instanceof TRPCClientError)) return null
  const response = error.meta?.response
  const seconds = response instanceof Response ? response.headers.get('retry-after') : null
  return seconds !== null && /^\d+$/.test(seconds) ? Number(seconds) : null
}
