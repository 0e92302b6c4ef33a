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
  /** Always given for `validation_failed`; its path is empty where the request as a whole is meant. */
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
    this.issues = more.issues ?? (code === 'validation_failed' ? [{ path: '', message: detail }] : undefined)
    this.internalDetail = more.internalDetail
    this.retryAfter = more.retryAfter
  }
}

const MOST_ISSUES = 50

/** `validation_failed` with the first problem of each field, for at most 50 fields. */
export function invalidFields(issues: readonly RefusalIssue[]): Refusal {
  const byPath = new Map<string, RefusalIssue>()
  for (const issue of issues) {
    if (!byPath.has(issue.path)) byPath.set(issue.path, issue)
  }
  const shown = [...byPath.values()].slice(0, MOST_ISSUES)
  return new Refusal('validation_failed', summaryOf(shown), { issues: shown })
}

/** `commission_rate must be between 0.01 and 90, and 2 more problems.` */
function summaryOf([first, ...more]: readonly RefusalIssue[]): string {
  if (!first) return 'The request has fields that are not valid.'
  const others =
    more.length === 0 ? '' : `, and ${more.length} more ${more.length === 1 ? 'problem' : 'problems'}`
  return `${first.path || 'The request'} ${first.message}${others}.`
}
