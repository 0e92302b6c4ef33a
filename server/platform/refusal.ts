import type { ErrorCode } from '../../shared/error-codes.ts'

export interface RefusalIssue {
  path: string
  message: string
}

/**
 * An expected "no": the caller gets `code` and `detail`; `internalDetail` goes to the log only.
 * Anything else that is thrown is a bug, logged whole and answered as `internal`.
 */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly detail: string
  readonly issues: RefusalIssue[] | undefined
  readonly internalDetail: string | undefined
  /** Seconds after which a retry makes sense (`rate_limited`, `unavailable`). */
  readonly retryAfter: number | undefined

  constructor(
    code: ErrorCode,
    detail: string,
    more: { issues?: RefusalIssue[]; internalDetail?: string; retryAfter?: number } = {},
  ) {
    super(`${code}: ${detail}`)
    this.name = 'Refusal'
    this.code = code
    this.detail = detail
    this.issues = more.issues
    this.internalDetail = more.internalDetail
    this.retryAfter = more.retryAfter
  }
}
