import { STATUS_CODES } from 'node:http'
import { ERROR_EXAMPLES, ERROR_STATUS, type ErrorCode, type Problem } from '../../../shared/error-codes.ts'
import { EXAMPLES } from './examples.ts'

const integer = (description: string, example: number) => ({
  description,
  schema: { type: 'integer' },
  example,
})

export const RETRY_AFTER = { 'Retry-After': integer('Seconds to wait before a retry.', 41) }

const rateLimit = (remaining: number) => ({
  'RateLimit-Limit': integer('Calls per minute.', 300),
  'RateLimit-Remaining': integer('Calls left in this minute.', remaining),
  'RateLimit-Reset': integer('Seconds until the count starts again.', 41),
})

/** The headers of an answer to a counted call. */
export const RATE_LIMIT = rateLimit(297)

/** What the example of a code shows in one operation. */
export type ProblemFacts = Partial<Record<ErrorCode, Pick<Problem, 'detail' | 'issues'>>>

/** Texts by code as facts. */
export function factsFrom(details: Partial<Record<ErrorCode, string>>): ProblemFacts {
  return Object.fromEntries(Object.entries(details).map(([code, detail]) => [code, { detail }]))
}

/** The problem responses of an operation: one for each status, with an example for each code. */
export function problemResponses(
  codes: readonly ErrorCode[],
  facts: ProblemFacts = {},
): Record<string, unknown> {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_STATUS[code])
  const responses = [...byStatus].map(([status, ofStatus]) => [
    String(status),
    {
      description: `${STATUS_CODES[status]}: ${ofStatus.map((code) => `\`${code}\``).join(', ')}`,
      ...(status === 503 && { headers: RETRY_AFTER }),
      ...(status === 429 && { headers: { ...RETRY_AFTER, ...rateLimit(0) } }),
      content: {
        'application/problem+json': {
          schema: { $ref: '#/components/schemas/Problem' },
          examples: Object.fromEntries(
            ofStatus.map((code) => [code, { value: exampleProblem(code, facts) }]),
          ),
        },
      },
    },
  ])
  return Object.fromEntries(responses)
}

export function exampleProblem(code: ErrorCode, facts: ProblemFacts = {}): Problem {
  const status = ERROR_STATUS[code]
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: ERROR_EXAMPLES[code],
    code,
    request_id: EXAMPLES.edge.request_id,
    ...facts[code],
  }
}
