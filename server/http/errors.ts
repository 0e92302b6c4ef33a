import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import type { Platform } from '../platform/platform.ts'
import { type ProblemAnswer, problemOf } from '../platform/problem.ts'
import { Refusal } from '../platform/refusal.ts'

export const PROBLEM_TYPE = 'application/problem+json'

/** Any error that reached the edge as its problem; what nobody expected is logged whole. */
export function problemAt(platform: Platform, request: FastifyRequest, error: unknown): ProblemAnswer {
  const problem = problemOf(ofFastify(error), request.id, platform.database)
  if (problem.isBug) platform.log.error({ requestId: request.id, route: routeOf(request), err: error }, 'bug')
  return problem
}

/** The headers that go with a problem. RFC 9110 wants a challenge with every 401. */
export function problemHeaders(problem: ProblemAnswer): Record<string, string> {
  return {
    ...(problem.retryAfter !== undefined && { 'retry-after': String(problem.retryAfter) }),
    ...(problem.status === 401 && { 'www-authenticate': 'Bearer' }),
  }
}

/** Answers an error as application/problem+json. */
export function sendProblem(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const problem = problemAt(platform, request, error)
  // As bytes: to a text Fastify would add a charset, which this media type does not have.
  return reply
    .code(problem.status)
    .headers(problemHeaders(problem))
    .type(PROBLEM_TYPE)
    .send(Buffer.from(JSON.stringify(problem.body)))
}

/** The route's pattern, not what was asked for: that may hold what does not belong into a log. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown'
}

const BY_STATUS: Record<number, [ErrorCode, string]> = {
  413: ['payload_too_large', 'The body is too large.'],
  415: ['unsupported_media_type', 'The body must be application/json in UTF-8.'],
}

/** Fastify's own complaints about a request carry a status below 500; their wording is ours all the same. */
function ofFastify(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('statusCode' in error)) return error
  const { code, statusCode } = error
  // The client went away in the middle of its body: nobody hears the answer, and there is no bug to look for.
  if (code === 'ECONNRESET' && statusCode === 400) {
    return new Refusal('validation_failed', 'The request broke off before its end.')
  }
  if (typeof code !== 'string' || !code.startsWith('FST_') || typeof statusCode !== 'number') return error
  if (statusCode >= 500) return error
  const [refusal, detail] = BY_STATUS[statusCode] ?? [
    'validation_failed',
    'The request cannot be understood.',
  ]
  return new Refusal(refusal, detail, { internalDetail: code })
}

/** Answers 410: to programs it is `not_found`, since no code stands for it; the status tells that it was there once. */
export function sendGone(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  detail: string,
): FastifyReply {
  const { body } = problemOf(new Refusal('not_found', detail), request.id, platform.database)
  return reply
    .code(410)
    .type(PROBLEM_TYPE)
    .send(Buffer.from(JSON.stringify({ ...body, status: 410, title: 'Gone' })))
}
