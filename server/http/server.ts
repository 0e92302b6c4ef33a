import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import fastifyHelmet, { type FastifyHelmetOptions } from '@fastify/helmet'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Config } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { allowOrigins } from './cors.ts'
import { registerDocs } from './docs.ts'
import { routeOf, sendProblem } from './errors.ts'
import type { HttpApp } from './http-app.ts'
import { registerJobFile } from './job-file.ts'
import { registerMetrics } from './metrics.ts'
import { openApiDocument } from './openapi.ts'
import { createRateLimits, type RateLimits } from './rate-limit.ts'
import { registerRedirect } from './redirect.ts'
import { registerRest } from './rest.ts'
import { appRouter } from './router.ts'
import { registerTrpc } from './trpc.ts'
import { answerUnknownRoutes } from './unknown-route.ts'
import { closeUnusedConnections } from './unused-connections.ts'
import { registerWebhooks } from './webhooks.ts'

const MAX_BODY_BYTES = 256 * 1024
/** Request line and headers together; what is larger never becomes a request. */
const MAX_HEADER_BYTES = 16 * 1024
/** The names of a full tRPC batch stand in the path. */
const MAX_PARAM_LENGTH = 1000
const REQUEST_TIMEOUT_MS = 30_000
/** Longer than a load balancer's usual minute, so that it is never we who close a connection under its hands. */
const KEEP_ALIVE_MS = 65_000

/** The web server with every route, ready to listen. `close()` lets what is under way end. */
export async function createServer(app: HttpApp): Promise<FastifyInstance> {
  const { platform } = app
  const server = fastify({
    logger: false,
    genReqId: () => platform.ids.next(),
    trustProxy: trustProxyOf(platform.config.TRUST_PROXY),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { maxHeaderSize: MAX_HEADER_BYTES },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    return503OnClosing: false,
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => {
      // No hook runs for these, so what matters of the hooks is done here.
      reply.headers({
        'x-request-id': request.id,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      })
      sendProblem(platform, request, reply, error)
      logRequest(platform, request, reply)
    },
  })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  closeUnusedConnections(server)
  answerUnknownRoutes(server, platform)
  await server.register(fastifyHelmet, SECURITY_HEADERS)
  followRequests(server, app)
  await allowOrigins(server, platform.config.CORS_ORIGINS ?? [])
  const limits = await createRateLimits(server, platform, appRouter)
  const counted = registerMetrics(server, app)
  registerProbes(server, app)
  registerDescription(server, app, limits)
  registerDocs(server, limits.admitPublic)
  registerRest(server, platform, appRouter, limits.admit)
  registerTrpc(server, platform, appRouter, limits.admit)
  registerRedirect(server, counted)
  registerJobFile(server, app)
  await registerWebhooks(server, counted)
  await server.ready()
  return server
}

/**
 * Answers are data, never a page: nothing in them may load, run, or be framed. The one page, /docs, brings a policy of
 * its own. No `includeSubDomains`: what else stands below the operator's domain is not ours to decide.
 */
const SECURITY_HEADERS: FastifyHelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  strictTransportSecurity: { maxAge: 31_536_000, includeSubDomains: false },
  xFrameOptions: { action: 'deny' },
}

/** What is no HTTP request, or too large a head of one, gets an answer too; the connection is of no more use. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = BROKEN_REQUEST_STATUS[error.code ?? ''] ?? 400
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`
  socket.end(`${head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

const BROKEN_REQUEST_STATUS: Record<string, number> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** `true`, or the addresses of the proxies in front of us, with commas between; off unless set. */
function trustProxyOf(setting: Config['TRUST_PROXY']): boolean | string {
  if (setting === undefined || setting === 'false') return false
  return setting === 'true' ? true : setting
}

/** An id in every answer and log line. What is logged is named here: no addresses asked for, headers or bodies. */
function followRequests(server: FastifyInstance, { platform }: HttpApp): void {
  server.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    // Most answers are somebody's own figures; the few public ones change with every offer.
    reply.header('cache-control', 'no-store')
  })
  server.addHook('onResponse', async (request, reply) => logRequest(platform, request, reply))
}

function logRequest({ log }: Platform, request: FastifyRequest, reply: FastifyReply): void {
  const status = reply.statusCode
  const level = status >= 500 ? 'warn' : status >= 400 ? 'info' : 'debug'
  const facts = { requestId: request.id, method: request.method, route: routeOf(request), status }
  log[level]({ ...facts, ms: Math.round(reply.elapsedTime) }, 'request')
}

/** Made at the first request, since the address may be known only once the server listens. */
function registerDescription(server: FastifyInstance, { platform }: HttpApp, limits: RateLimits): void {
  let text: string | undefined
  server.get('/openapi.json', { onRequest: limits.admitPublic }, async (_request, reply) => {
    text ??= JSON.stringify(openApiDocument(appRouter, platform.publicBaseUrl))
    return reply.type('application/json').send(text)
  })
}

/** Liveness says that the process answers; readiness that it can do its work. */
function registerProbes(server: FastifyInstance, app: HttpApp): void {
  server.get('/healthz', async () => ({ status: 'ok' }))
  server.get('/readyz', async () => {
    const pending = await app.pendingMigrations()
    if (pending.length === 0) return { status: 'ready' }
    throw new Refusal('unavailable', 'The database has not been migrated yet.', {
      retryAfter: 5,
      internalDetail: `pending migrations: ${pending.join(', ')}`,
    })
  })
}
