import type { AnyRouter, TRPCError } from '@trpc/server'
import { fastifyRequestHandler } from '@trpc/server/adapters/fastify'
import type { TRPCRequestInfo } from '@trpc/server/http'
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { IDEMPOTENCY_HEADER } from '../platform/api/idempotency.ts'
import { problemOf, refusalOf } from '../platform/api/problem.ts'
import { type RequestContext, requestIds, trpcErrorOf } from '../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { contextOf } from './context.ts'
import { problemAt, problemHeaders } from './errors.ts'
import { trackEventStreams } from './event-streams.ts'
import type { Admit, RequestedCall } from './rate-limit.ts'
import { acceptJson } from './request-body.ts'

/** Calls in one HTTP request. */
export const MAX_BATCH = 10

/** Serves the router at /trpc, over tRPC's protocol. */
export function registerTrpc(
  server: FastifyInstance,
  platform: Platform,
  appRouter: AnyRouter,
  admit?: Admit,
): void {
  const trackStream = trackEventStreams(server, platform)
  server.register(async (scope) => {
    acceptJson(scope, { parsed: false })
    scope.setErrorHandler((error, request, reply) => {
      const problem = problemAt(platform, request, error)
      const { code } = trpcErrorOf(new Refusal(problem.body.code, problem.body.detail))
      const data = { code, httpStatus: problem.status, problem: problem.body }
      const shape = { message: problem.body.detail, code: TRPC_ERROR_CODES_BY_KEY[code], data }
      return reply.code(problem.status).headers(problemHeaders(problem)).send({ error: shape })
    })
    scope.route<{ Params: { path: string } }>({
      // The methods that tRPC uses; its adapter crashes on others, such as TRACE.
      method: ['GET', 'HEAD', 'POST'],
      url: '/trpc/:path',
      preHandler: async (request) => addMissingContentType(request),
      handler: (request, reply) =>
        requestIds.run(request.id, () =>
          fastifyRequestHandler<AnyRouter, typeof request, typeof reply>({
            router: appRouter,
            req: request,
            res: reply,
            path: request.params.path,
            maxBatchSize: MAX_BATCH,
            async createContext({ info }): Promise<RequestContext> {
              // Runs once a request, before any of its calls.
              const context = contextOf(platform, request, reply)
              if (context.idempotencyKey !== undefined && info.calls.length > 1)
                throw trpcErrorOf(KEY_OF_SEVERAL)
              if (context.sessionCookie && info.accept !== null) throw trpcErrorOf(COOKIE_IN_STREAM)
              await admit?.(request, reply, context, requestedCalls(info)).catch((error: unknown) => {
                throw trpcErrorOf(refusalOf(error, platform.database))
              })
              return info.type === 'subscription' ? { ...context, gone: trackStream(reply.raw) } : context
            },
            responseMeta: ({ errors, type }) => ({
              headers: {
                ...headersOf(platform, request.id, errors),
                ...(type === 'subscription' && STREAMED),
              },
            }),
          }),
        ),
    })
  })
}

/** A streamed batch sends its headers before its calls run. */
const COOKIE_IN_STREAM = invalidFields([
  { path: 'X-Session', message: 'needs answers that are not streamed' },
])
const KEY_OF_SEVERAL = invalidFields([{ path: IDEMPOTENCY_HEADER, message: 'needs a request with one call' }])

/** tRPC refuses a POST without a content type, even if it has no body. */
function addMissingContentType(request: FastifyRequest): void {
  if (request.method !== 'POST' || request.raw.headers['content-type'] !== undefined) return
  request.raw.headers['content-type'] = 'application/json'
  request.body = ''
}

function requestedCalls({ calls }: TRPCRequestInfo): RequestedCall[] {
  return calls.map(({ path, getRawInput }) => ({ name: path, input: getRawInput }))
}

/** `no-transform`: a compressing proxy would delay the events. */
const STREAMED = { 'cache-control': 'no-store, no-transform' }

/** The headers of a batch: the longest Retry-After of its failed calls. */
function headersOf(platform: Platform, requestId: string, errors: readonly TRPCError[]) {
  const problems = errors.map((error) => problemOf(error, requestId, platform.database))
  const [slowest] = problems.toSorted((a, b) => (b.retryAfter ?? 0) - (a.retryAfter ?? 0))
  const denied = problems.find((problem) => problem.status === 401)
  return {
    'cache-control': 'no-store',
    // tRPC omits it if it cannot parse the request.
    ...(errors.length > 0 && { 'content-type': 'application/json' }),
    ...(slowest && problemHeaders(slowest)),
    ...(denied && problemHeaders(denied)),
  }
}
