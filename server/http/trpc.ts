import type { AnyRouter, TRPCError } from '@trpc/server'
import { fastifyRequestHandler } from '@trpc/server/adapters/fastify'
import type { TRPCRequestInfo } from '@trpc/server/http'
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { problemOf, refusalOf } from '../platform/problem.ts'
import { type RequestContext, requestIds, trpcErrorOf } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { contextOf } from './context.ts'
import { problemAt, problemHeaders } from './errors.ts'
import { careForEventStreams } from './event-streams.ts'
import { acceptJson } from './json-body.ts'
import type { Admit, WantedCall } from './rate-limit.ts'

/** How many calls one HTTP request may carry. */
export const MAX_BATCH = 10

/** Serves the router at /trpc, in tRPC's own protocol. */
export function registerTrpc(
  server: FastifyInstance,
  platform: Platform,
  appRouter: AnyRouter,
  admit?: Admit,
): void {
  const care = careForEventStreams(server, platform)
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
      // tRPC's own methods: with some others (TRACE) its adapter breaks instead of refusing.
      method: ['GET', 'HEAD', 'POST'],
      url: '/trpc/:path',
      preHandler: async (request) => sayJsonWithoutBody(request),
      handler: (request, reply) =>
        requestIds.run(request.id, () =>
          fastifyRequestHandler<AnyRouter, typeof request, typeof reply>({
            router: appRouter,
            req: request,
            res: reply,
            path: request.params.path,
            maxBatchSize: MAX_BATCH,
            async createContext({ info }): Promise<RequestContext> {
              // Once a request, with the calls as tRPC itself has read them: refused, none of them runs.
              const context = contextOf(platform, request)
              await admit?.(request, reply, context, wantedCalls(info)).catch((error: unknown) => {
                throw trpcErrorOf(refusalOf(error, platform.database))
              })
              return info.type === 'subscription' ? { ...context, gone: care(reply.raw) } : context
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

/** Without a content type a POST comes this far only when it has no body; tRPC would refuse it nevertheless. */
function sayJsonWithoutBody(request: FastifyRequest): void {
  if (request.method !== 'POST' || request.raw.headers['content-type'] !== undefined) return
  request.raw.headers['content-type'] = 'application/json'
  request.body = ''
}

function wantedCalls({ calls }: TRPCRequestInfo): WantedCall[] {
  return calls.map(({ path, getRawInput }) => ({ name: path, input: getRawInput }))
}

/** A proxy that compresses a stream would hold its events back. */
const STREAMED = { 'cache-control': 'no-store, no-transform' }

/** Of several failed calls in one request the longest wait counts. */
function headersOf(platform: Platform, requestId: string, errors: readonly TRPCError[]) {
  const problems = errors.map((error) => problemOf(error, requestId, platform.database))
  const [slowest] = problems.toSorted((a, b) => (b.retryAfter ?? 0) - (a.retryAfter ?? 0))
  const denied = problems.find((problem) => problem.status === 401)
  return {
    'cache-control': 'no-store',
    // tRPC says so itself, but not where it cannot even tell what is called.
    ...(errors.length > 0 && { 'content-type': 'application/json' }),
    ...(slowest && problemHeaders(slowest)),
    ...(denied && problemHeaders(denied)),
  }
}
