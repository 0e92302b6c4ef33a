import { TRPCClientError } from '@trpc/client'
import type { ErrorCode, Problem } from '../error-codes.ts'
import type { AppRouter } from './api.ts'

/** What a call throws that the service refused. */
export interface RefusedCall<Code extends ErrorCode = ErrorCode> extends Error {
  readonly data: { readonly problem: Problem & { code: Code } }
}

/** What the service said about a failed call; `null` if the service did not answer (no network, for example). */
export function problemIn(error: unknown): Problem | null {
  if (!(error instanceof TRPCClientError)) return null
  return (error as TRPCClientError<AppRouter>).data?.problem ?? null
}

/** Whether a call was refused with one of these codes; without codes: with any. `error.data.problem` is what the service said. */
export function isRefusal<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: Code[]
): error is RefusedCall<Code> {
  const problem = problemIn(error)
  return problem !== null && (codes.length === 0 || (codes as ErrorCode[]).includes(problem.code))
}

/** Seconds to wait before another try (`rate_limited`, `unavailable`); `null` if the service named none. */
export function retryAfter(error: unknown): number | null {
  const seconds = responseOf(error)?.headers.get('retry-after') ?? null
  return seconds !== null && /^\d+$/.test(seconds) ? Number(seconds) : null
}

/** The HTTP response of a failed call, if there was one. */
export function responseOf(error: unknown): Response | null {
  const response = error instanceof TRPCClientError ? error.meta?.response : null
  return response instanceof Response ? response : null
}
