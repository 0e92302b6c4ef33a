import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import { type ProblemAnswer, problemOf, tamperedRowOf } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'

export const PROBLEM_TYPE = 'application/problem+json'

/** The problem for an error that reached the edge. Logs unexpected errors with their stack, and flags a changed row. */
export function problemAt(platform: Platform, request: FastifyRequest, error: unknown): ProblemAnswer {
  const problem = problemOf(fromFastify(error), request.id, platform.database)
  const tampered = tamperedRowOf(error)
  if (tampered) void platform.reportTampered(tampered)
  if (problem.isBug) platform.log.error({ requestId: request.id, route: routeOf(request), err: error }, 'bug')
  return problem
}

/** The headers of a problem. RFC 9110 requires a challenge with every 401. */
export function problemHeaders(problem: ProblemAnswer): Record<string, string> {
  return {
    ...(problem.retryAfter !== undefined && { 'retry-after': String(problem.retryAfter) }),
    ...(problem.status === 401 && { 'www-authenticate': 'Bearer' }),
  }
}

/** Sends an error as application/problem+json. */
export function sendProblem(
  platform: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const problem = problemAt(platform, request, error)
  // A buffer: to a string Fastify adds a charset, which this media type does not define.
  return reply
    .code(problem.status)
    .headers(problemHeaders(problem))
    .type(PROBLEM_TYPE)
    .send(Buffer.from(JSON.stringify(problem.body)))
}

/** Sends an error through Fastify's error handler, from a callback. */
export function sendError(reply: FastifyReply, error: unknown): void {
  reply.send(error instanceof Error ? error : new Error(String(error)))
}

/** The route's pattern. The requested path itself may hold secrets, so it is neither logged nor a metric label. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown'
}

/** Logs a request: no path, headers or body, which may hold secrets. */
export function logRequest(
  { log }: Platform,
  request: FastifyRequest,
  reply: FastifyReply,
  ms: number,
): void {
  const status = reply.statusCode
  const level = status >= 500 ? 'warn' : status >= 400 ? 'info' : 'debug'
  if (level === 'debug' && !log.isLevelEnabled(level)) return
  const facts = { requestId: request.id, method: request.method, route: routeOf(request), status }
  log[level]({ ...facts, ms: Math.round(ms) }, 'request')
}

const BY_STATUS: Record<number, [ErrorCode, string]> = {
  413: ['payload_too_large', 'The body is too large.'],
  415: ['unsupported_media_type', 'The body must be application/json in UTF-8.'],
}

/** Fastify's own client errors as refusals, with our texts. */
function fromFastify(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('statusCode' in error)) return error
  const { code, statusCode } = error
  // The client disconnected while it sent the body. That is no bug.
  if (code === 'ECONNRESET' && statusCode === 400) {
    return new Refusal('validation_failed', 'The connection closed before the body was complete.')
  }
  if (typeof code !== 'string' || !code.startsWith('FST_') || typeof statusCode !== 'number') return error
  if (statusCode >= 500) return error
  const [refusal, detail] = BY_STATUS[statusCode] ?? ['validation_failed', 'The request is not valid.']
  return new Refusal(refusal, detail, { internalDetail: code })
}
