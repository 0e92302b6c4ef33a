import { STATUS_CODES } from 'node:http'
import { ERROR_STATUS, type ErrorCode, type Problem } from '../../../shared/error-codes.ts'

const EXAMPLE_REQUEST_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

const integer = (description: string) => ({ description, schema: { type: 'integer' } })

export const RETRY_AFTER = { 'Retry-After': integer('Seconds to wait before a retry.') }

const RATE_LIMIT = {
  'RateLimit-Limit': integer('Calls per minute.'),
  'RateLimit-Remaining': integer('Calls left in this minute.'),
  'RateLimit-Reset': integer('Seconds until the count starts again.'),
}

/** The problem responses of an operation: one for each status, with an example for each code. */
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

function exampleProblem(code: ErrorCode): Problem {
  const status = ERROR_STATUS[code]
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: 'A sentence that explains the problem.',
    code,
    request_id: EXAMPLE_REQUEST_ID,
    ...(code === 'validation_failed' && {
      issues: [{ path: 'commission_rate', message: 'must be between 0.01 and 90' }],
    }),
  }
}
