import { STATUS_CODES } from 'node:http'
import { TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import { ERROR_STATUS, type ErrorCode } from '../../shared/error-codes.ts'
import type { Problem } from '../../shared/schemas/common.ts'
import type { Database } from './database.ts'
import './input-messages.ts'
import { invalidFields, Refusal, type RefusalIssue } from './refusal.ts'

/** What a client is told about an error, and what the edge must know beside it. */
export interface ProblemAnswer {
  status: number
  body: Problem
  /** Seconds, for the header Retry-After. */
  retryAfter: number | undefined
  /** Nobody expected this error, and nobody has logged it yet: that has to be done, whole. */
  isBug: boolean
}

/** How long a client should wait when the database is away, in seconds. */
const DATABASE_RETRY_AFTER = 2

/**
 * Any error as an RFC 9457 problem. `type` is always `about:blank`, which makes `title` the status' name; programs
 * tell problems apart by `code`. The text of an unexpected error never shows.
 */
export function problemOf(
  error: unknown,
  requestId: string,
  database: Pick<Database, 'faultOf'>,
): ProblemAnswer {
  const refusal = refusalOf(error, database)
  const status = ERROR_STATUS[refusal.code]
  return {
    status,
    body: {
      type: 'about:blank',
      title: STATUS_CODES[status] ?? 'Error',
      status,
      detail: refusal.detail,
      code: refusal.code,
      request_id: requestId,
      ...(refusal.issues ? { issues: refusal.issues } : {}),
    },
    retryAfter: refusal.retryAfter,
    isBug: refusal.code === 'internal' && refusal !== error && refusal !== causeOf(error),
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

/** Any error as the refusal that stands for it. What nobody expected becomes `internal`. */
export function refusalOf(error: unknown, database: Pick<Database, 'faultOf'>): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof TRPCError) return ofTrpcError(error, database)
  const kind = database.faultOf(error)?.kind
  if (kind === 'unavailable' || kind === 'contention') {
    return new Refusal('unavailable', 'The service cannot reach its database right now. Try again shortly.', {
      retryAfter: DATABASE_RETRY_AFTER,
      internalDetail: String(error),
    })
  }
  return new Refusal('internal', 'Something went wrong on our side. Give the request id when you report it.')
}

const OF_TRPC_CODE: Partial<Record<TRPCError['code'], [ErrorCode, string]>> = {
  PARSE_ERROR: ['malformed_json', 'The request is not valid JSON.'],
  BAD_REQUEST: ['validation_failed', 'The request is not valid.'],
  NOT_FOUND: ['not_found', 'There is no such procedure.'],
  METHOD_NOT_SUPPORTED: ['method_not_allowed', 'This procedure is not called with this HTTP method.'],
  PAYLOAD_TOO_LARGE: ['payload_too_large', 'The body is too large.'],
  UNSUPPORTED_MEDIA_TYPE: ['unsupported_media_type', 'The body must be application/json.'],
}

/** tRPC wraps what a procedure threw, and words its own complaints (unknown procedure, wrong input) by a code. */
function ofTrpcError(error: TRPCError, database: Pick<Database, 'faultOf'>): Refusal {
  const { cause } = error
  if (cause instanceof Refusal) return cause
  // The same class of error means the caller's fault on the way in and ours on the way out.
  if (error.code === 'BAD_REQUEST' && cause instanceof ZodError) return invalidInput(cause)
  if (cause instanceof SyntaxError && error.code !== 'INTERNAL_SERVER_ERROR') {
    return new Refusal('malformed_json', 'The request is not valid JSON.')
  }
  const known = OF_TRPC_CODE[error.code]
  return known ? new Refusal(...known) : refusalOf(cause, database)
}

/** A zod error of an input as `validation_failed`; see `invalidFields`. */
export function invalidInput(error: ZodError): Refusal {
  return invalidFields(issuesOf(error))
}

/** The problems of an input, with the fields' paths in dots: `payout_destination.iban`. */
export function issuesOf(error: ZodError): RefusalIssue[] {
  return error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: issue.message }))
      : [{ path: pathOf(issue.path), message: issue.message }],
  )
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.map(String).join('.').slice(0, 200)
}
