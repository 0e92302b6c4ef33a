import { STATUS_CODES } from 'node:http'
import { TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import { ERROR_STATUS, type ErrorCode, type Problem } from '../../../shared/error-codes.ts'
import type { Database } from '../database/database.ts'
import { TamperedRow } from '../database/protected-rows.ts'
import './input-messages.ts'
import { invalidFields, Refusal, type RefusalIssue } from './refusal.ts'

/** An error as it is sent to the client, and what the edge needs to know of it. */
export interface ProblemAnswer {
  status: number
  body: Problem
  /** Seconds, for the header Retry-After. */
  retryAfter: number | undefined
  /** An unexpected error that is not logged yet. */
  isBug: boolean
}

/** Seconds. */
const DATABASE_RETRY_AFTER = 2

/**
 * Any error as an RFC 9457 problem. `type` is `about:blank`, so `title` is the name of the status; clients use `code`. The
 * message of an unexpected error is never sent.
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

/** The changed row that an error is about, also inside tRPC's error; `null` for any other. */
export function tamperedRowOf(error: unknown): TamperedRow | null {
  return [error, causeOf(error)].find((each) => each instanceof TamperedRow) ?? null
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined
}

/** Any error as a refusal. Unexpected errors become `internal`. */
export function refusalOf(error: unknown, database: Pick<Database, 'faultOf'>): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof TRPCError) return ofTrpcError(error, database)
  const kind = database.faultOf(error)?.kind
  if (kind === 'unavailable' || kind === 'contention') {
    return new Refusal('unavailable', 'The database is not available. Try again shortly.', {
      retryAfter: DATABASE_RETRY_AFTER,
      internalDetail: String(error),
    })
  }
  if (error instanceof TamperedRow) {
    return new Refusal(
      'conflict',
      'A record that this needs was changed outside of the service. An operator has to review it.',
      { internalDetail: error.message },
    )
  }
  return new Refusal('internal', 'Internal error. Report it with the request_id.')
}

const OF_TRPC_CODE: Partial<Record<TRPCError['code'], [ErrorCode, string]>> = {
  PARSE_ERROR: ['malformed_json', 'The request is not valid JSON.'],
  BAD_REQUEST: ['validation_failed', 'The request is not valid.'],
  NOT_FOUND: ['not_found', 'Procedure not found.'],
  METHOD_NOT_SUPPORTED: ['method_not_allowed', 'This procedure does not support this HTTP method.'],
  PAYLOAD_TOO_LARGE: ['payload_too_large', 'The body is too large.'],
  UNSUPPORTED_MEDIA_TYPE: ['unsupported_media_type', 'The body must be application/json.'],
}

/** tRPC wraps what a procedure threw, and has codes for its own errors (unknown procedure, invalid input). */
function ofTrpcError(error: TRPCError, database: Pick<Database, 'faultOf'>): Refusal {
  const { cause } = error
  if (cause instanceof Refusal) return cause
  // A ZodError of an input is the client's error, one of an output is a bug.
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
