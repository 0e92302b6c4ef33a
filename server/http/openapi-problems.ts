import { STATUS_CODES } from 'node:http'
import { ERROR_STATUS, type ErrorCode } from '../../shared/error-codes.ts'
import type { Problem } from '../../shared/schemas/common.ts'
import type { ProcedureMeta } from '../platform/procedure.ts'

const EXAMPLE_REQUEST_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

export interface OperationFacts {
  hasBody: boolean
  /** Not every role may call. */
  restricted: boolean
}

/** Every code that an operation can answer, by itself or because of what it takes. */
export function codesOf(meta: ProcedureMeta, facts: OperationFacts): ErrorCode[] {
  return [
    'validation_failed',
    'unauthenticated',
    ...(facts.hasBody ? (['malformed_json', 'payload_too_large', 'unsupported_media_type'] as const) : []),
    ...(facts.restricted ? (['forbidden'] as const) : []),
    ...(meta.errors ?? []),
    'rate_limited',
    'internal',
    'unavailable',
  ]
}

/** The problem responses of an operation: one a status, with an example for each code. */
export function problemResponses(codes: readonly ErrorCode[]): Record<string, unknown> {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_STATUS[code])
  const responses = [...byStatus].map(([status, ofStatus]) => [
    String(status),
    {
      description: `${STATUS_CODES[status]}: ${ofStatus.map((code) => `\`${code}\``).join(', ')}`,
      ...(status === 503 && { headers: RETRY_AFTER }),
      ...(status === 429 && { headers: { ...RETRY_AFTER, ...RATE_LIMIT } }),
      content: {
        'application/problem+json': {
          schema: { $ref: '#/components/schemas/Problem' },
          examples: Object.fromEntries(ofStatus.map((code) => [code, { value: exampleProblem(code) }])),
        },
      },
    },
  ])
  return Object.fromEntries(responses)
}

export const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds until another try makes sense.', schema: { type: 'integer' } },
}

const whole = (description: string) => ({ description, schema: { type: 'integer' } })

const RATE_LIMIT = {
  'RateLimit-Limit': whole('Calls a minute.'),
  'RateLimit-Remaining': whole('Calls that are left of them.'),
  'RateLimit-Reset': whole('Seconds until they are counted anew.'),
}

function exampleProblem(code: ErrorCode): Problem {
  const status = ERROR_STATUS[code]
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: 'A sentence for people.',
    code,
    request_id: EXAMPLE_REQUEST_ID,
    ...(code === 'validation_failed' && {
      issues: [{ path: 'a_field', message: 'what is wrong with it' }],
    }),
  }
}
