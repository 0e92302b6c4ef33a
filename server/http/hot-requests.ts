import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { routeOf } from './errors.ts'
import type { RequestTimes } from './metrics-requests.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it came in, by performance.now(); 0 but on the hottest paths. */
    begunAt: number
  }
}

/** To be told when an answer is handed over to be sent. */
export type Answered = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Times and logs the requests of the hottest paths, up to when their answer is handed over to be sent: short as it is, it is sent in the
 * same moment. With `onResponse` the framework listens to each answer for its end, which costs more than all the rest of this. Answers
 * what a route is to tell whose answers do not go through the framework's hooks.
 */
export function followHotRequests(
  server: FastifyInstance,
  platform: Platform,
  times: RequestTimes,
): (route: string) => Answered {
  const answeredOn = (route: string): Answered => {
    const time = times.of(route)
    return (request, reply) => {
      const ms = performance.now() - request.begunAt
      time(request.method, reply.statusCode, ms)
      // Anyone can have these routes refuse thousands of requests a second; metrics count them, and webhooks log them by the minute.
      if (reply.statusCode >= 500 || platform.log.isLevelEnabled('debug'))
        logRequest(platform, request, reply, ms)
    }
  }
  server.decorateRequest('begunAt', 0)
  server.addHook('onRequest', (request, _reply, done) => {
    request.begunAt = performance.now()
    done()
  })
  server.addHook('onRoute', (route) => {
    const answered = answeredOn(route.url)
    route.onSend = (request, reply, _payload, done) => {
      answered(request, reply)
      done()
    }
  })
  return answeredOn
}

/** Writes an answer with these headers (a name and its value, one after the other) besides those that all have. */
export type DirectAnswer = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: { status: number; headers: readonly string[]; body?: string },
) => void

/**
 * Answers of one route by Node's own means: the framework would gather the headers one by one and look for hooks and a body, which took
 * a tenth of a whole redirect. What its hooks do for other answers, `answered` does.
 */
export function answerDirectly(answered: Answered, ofAll: Readonly<Record<string, string>>): DirectAnswer {
  const fixed = Object.entries(ofAll).flat()
  return (request, reply, { status, headers, body }) => {
    reply.raw.writeHead(status, [...fixed, 'x-request-id', request.id, ...headers]).end(body)
    answered(request, reply)
  }
}

/** To be answered as an error that is thrown in a handler: to whom it may concern knows the error handler. */
export function refuseWith(reply: FastifyReply, error: unknown): void {
  reply.send(error instanceof Error ? error : new Error(String(error)))
}

/** An id in every answer. Most are somebody's own figures; the few public ones say otherwise themselves. */
export function head(
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
): FastifyReply {
  return reply.headers(headers).header('x-request-id', request.id).header('cache-control', 'no-store')
}

/** What is logged is named here: no addresses asked for, headers or bodies. */
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
