import {
  createTRPCClient,
  httpBatchLink,
  httpSubscriptionLink,
  splitLink,
  type TRPCClient,
  TRPCClientError,
} from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { EventSource } from 'eventsource'
import type { AppRouter } from '../server/http/router.ts'
import type { ErrorCode } from './error-codes.ts'
import type { Problem } from './schemas/common.ts'

export type { AppRouter } from '../server/http/router.ts'
export { ERROR_STATUS, type ErrorCode } from './error-codes.ts'
export { CURRENCY, displayMoney, formatMoney, type Paisa, parseMoney } from './money.ts'
export { type BasisPoints, basisPointsToPercent, percentToBasisPoints } from './rates.ts'
export type { Problem } from './schemas/common.ts'

/**
 * `client.offers.list.query({ … })`, `client.applications.apply.mutate({ … })`,
 * `client.live.changes.subscribe({}, { onData })`: every procedure by its name.
 */
export type MarketplaceClient = TRPCClient<AppRouter>

/** What each procedure takes: `Inputs['offers']['create']`. */
export type Inputs = inferRouterInputs<AppRouter>

/** What each procedure answers: `Outputs['sales']['list']`. */
export type Outputs = inferRouterOutputs<AppRouter>

export interface ClientOptions {
  /** Where the service is reached: `https://affiliates.example.pk`. */
  url: string
  /** The bearer token of a log-in; a function is asked before each request. Without one, what everybody may call. */
  token?: string | (() => string | null | undefined)
  /** Instead of the platform's own. */
  fetch?: typeof globalThis.fetch
}

/** As many calls as the service takes in one request, and addresses that every proxy lets through. */
const MAX_CALLS = 10
const MAX_URL_LENGTH = 2000

/**
 * A typed client of the service. Calls of one moment travel together. A refused call throws a `TRPCClientError`, in
 * which `problemIn` finds what the service said; a refused or broken subscription hands it to `onError`.
 */
export function createClient(options: ClientOptions): MarketplaceClient {
  const { token, fetch } = options
  const url = `${options.url.replace(/\/+$/, '')}/trpc`
  const credential = (): Record<string, string> => {
    const shown = typeof token === 'function' ? token() : token
    return shown ? { authorization: `Bearer ${shown}` } : {}
  }
  const calls = httpBatchLink<AppRouter>({
    url,
    maxItems: MAX_CALLS,
    maxURLLength: MAX_URL_LENGTH,
    ...(fetch && { fetch }),
    headers: credential,
  })
  // Not the platform's own EventSource: where there is one, it can show no token.
  const streams = httpSubscriptionLink<AppRouter, typeof EventSource>({
    url,
    EventSource,
    eventSourceOptions: {
      fetch: (address, init) =>
        (fetch ?? globalThis.fetch)(address, { ...init, headers: { ...init.headers, ...credential() } }),
    },
  })
  const isStream = ({ type }: { type: string }) => type === 'subscription'
  return createTRPCClient<AppRouter>({
    links: [splitLink({ condition: isStream, true: streams, false: calls })],
  })
}

/** What the service said about a failed call; `null` when it was not the service that failed it (no network, …). */
export function problemIn(error: unknown): Problem | null {
  if (!(error instanceof TRPCClientError)) return null
  return (error as TRPCClientError<AppRouter>).data?.problem ?? null
}

/** Whether a call was refused for one of these reasons. */
export function isRefusal(error: unknown, ...codes: ErrorCode[]): boolean {
  const problem = problemIn(error)
  return problem !== null && codes.includes(problem.code)
}

/** Seconds after which another try makes sense (`rate_limited`, `unavailable`); `null` when the service named none. */
export function retryAfter(error: unknown): number | null {
  if (!(error instanceof TRPCClientError)) return null
  const response = error.meta?.response
  const seconds = response instanceof Response ? response.headers.get('retry-after') : null
  return seconds !== null && /^\d+$/.test(seconds) ? Number(seconds) : null
}
