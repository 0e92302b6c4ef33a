import type { ErrorCode } from '../../../shared/error-codes.ts'

export interface RefusalIssue {
  path: string
  message: string
}

/**
 * An expected error. The client gets `code` and `detail`; `internalDetail` is only logged. Any other thrown error is a bug: it
 * is logged and answered as `internal`.
 */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly detail: string
  /** Always set for `validation_failed`. An empty path means the whole request. */
  readonly issues: RefusalIssue[] | undefined
  readonly internalDetail: string | undefined
  /** Seconds to wait before a retry (`rate_limited`, `unavailable`). */
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

/** What a request that the database does not answer in time is refused with. */
export function unavailable(detail: string, internalDetail: string): Refusal {
  return new Refusal('unavailable', `${detail} Try again shortly.`, { internalDetail, retryAfter: 1 })
}

/** `rate_limited` for so many seconds, which the text gives in whole minutes. */
export function tooMany(detail: string, seconds: number): Refusal {
  const minutes = Math.ceil(seconds / 60)
  const wait = minutes === 1 ? '1 minute' : `${minutes} minutes`
  return new Refusal('rate_limited', `${detail} Try again in ${wait}.`, { retryAfter: seconds })
}

const MAX_ISSUES = 50

/** `validation_failed` with the first problem of each field, for at most 50 fields, in the order of their paths: REST and tRPC answer alike. */
export function invalidFields(issues: readonly RefusalIssue[]): Refusal {
  const firsts = [...Map.groupBy(issues, ({ path }) => path).values()].flatMap(([first]) => first ?? [])
  const shown = firsts.slice(0, MAX_ISSUES).sort((a, b) => (a.path < b.path ? -1 : 1))
  return new Refusal('validation_failed', summaryOf(shown), { issues: shown })
}

/** `commission_rate must be between 0.01 and 90, and 2 more problems.` */
function summaryOf([first, ...more]: readonly RefusalIssue[]): string {
  if (!first) return 'The request has invalid fields.'
  const others =
    more.length === 0 ? '' : `, and ${more.length} more ${more.length === 1 ? 'problem' : 'problems'}`
  return `${first.path || 'The request'} ${first.message}${others}.`
}
