import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import type { Config } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'
import { problemOf } from '../platform/problem.ts'
import { Refusal } from '../platform/refusal.ts'
import { withStatementPatience } from '../platform/statement-patience.ts'
import { allowOrigins } from './cors.ts'
import { registerDocs } from './docs.ts'
import { endEmptyBodies } from './empty-bodies.ts'
import { PROBLEM_TYPE, sendProblem } from './errors.ts'
import { followHotRequests, head, logRequest } from './hot-requests.ts'
import type { HttpApp } from './http-app.ts'
import { registerJobFile } from './job-file.ts'
import { createMetrics, type Metrics, registerMetrics } from './metrics.ts'
import { NO_SCHEMAS } from './no-schemas.ts'
import { openApiDocument } from './openapi.ts'
import { createRateLimits, type RateLimits } from './rate-limit.ts'
import { registerRedirect } from './redirect.ts'
import { registerRest } from './rest.ts'
import { appRouter } from './router.ts'
import { type SecurityHeaders, securityHeaders } from './security-headers.ts'
import { registerTrpc } from './trpc.ts'
import { answerUnknownRoutes, refuseEmptyParameters, watchRoutes } from './unknown-route.ts'
import { closeUnusedConnections } from './unused-connections.ts'
import { registerWebhooks } from './webhooks.ts'

const MAX_BODY_BYTES = 256 * 1024
/** Request line and headers together; what is larger never becomes a request. */
const MAX_HEADER_BYTES = 16 * 1024
/** The names of a full tRPC batch stand in the path. */
const MAX_PARAM_LENGTH = 1000
const REQUEST_TIMEOUT_MS = 30_000
/** What comes beyond this many connections is closed; each takes some 20 KB. */
const MAX_CONNECTIONS = 5000
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
    // Most requests have no body: Node then spares them the stream of one, a tenth of a redirect's time. See `endEmptyBodies`.
    http: { maxHeaderSize: MAX_HEADER_BYTES, optimizeEmptyRequests: true },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    return503OnClosing: false,
    ...NO_SCHEMAS,
    clientErrorHandler: (error, socket) => answerBrokenRequest(platform, error, socket),
    frameworkErrors: (error, request, reply) => {
      // No hook runs for these, so what matters of the hooks is done here.
      reply.headers({
        'x-request-id': request.id,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      })
      sendProblem(platform, request, reply, error)
      logRequest(platform, request, reply, reply.elapsedTime)
    },
  })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  server.server.maxConnections = MAX_CONNECTIONS
  closeUnusedConnections(server)
  const known = watchRoutes(server)
  const headers = await securityHeaders()
  const metrics = createMetrics(app)
  // Two plugins, so that each has hooks of its own.
  await server.register((scope) => registerHotPaths(scope, metrics, headers))
  await server.register(async (scope) => {
    followRequests(scope, platform, headers.all)
    answerUnknownRoutes(scope, platform, known)
    await registerOthers(scope, metrics)
  })
  await server.ready()
  return server
}

/** The redirect and the webhooks, which carry nearly all the traffic: few hooks, and few headers unless there is something to say. */
async function registerHotPaths(
  scope: FastifyInstance,
  { counted, times }: Metrics,
  headers: SecurityHeaders,
): Promise<void> {
  const { platform } = counted
  const answeredOn = followHotRequests(scope, platform, times)
  scope.setErrorHandler((error, request, reply) =>
    sendProblem(platform, request, head(request, reply, headers.all), error),
  )
  registerRedirect(scope, { ...counted, headers, answeredOn })
  await registerWebhooks(scope, { ...counted, headers, answeredOn })
}

async function registerOthers(scope: FastifyInstance, metrics: Metrics): Promise<void> {
  const app = metrics.counted
  const { platform } = app
  scope.addHook('preHandler', (_request, _reply, done) => withStatementPatience(done))
  endEmptyBodies(scope)
  await allowOrigins(scope, platform.config.CORS_ORIGINS ?? [])
  refuseEmptyParameters(scope)
  const limits = createRateLimits(platform, appRouter)
  registerMetrics(scope, metrics)
  registerProbes(scope, app)
  registerDescription(scope, app, limits)
  registerDocs(scope, limits.admitPublic)
  registerRest(scope, platform, appRouter, limits.admit)
  registerTrpc(scope, platform, appRouter, limits.admit)
  registerJobFile(scope, app, limits)
}

/** What is no HTTP request, or too large a head of one, gets an answer too; the connection is of no more use. */
function answerBrokenRequest(platform: Platform, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, code, detail] = BROKEN_REQUESTS[error.code ?? ''] ?? NO_REQUEST
  const requestId = platform.ids.next()
  const { body } = problemOf(new Refusal(code, detail), requestId, platform.database)
  const title = STATUS_CODES[status] ?? body.title
  const text = JSON.stringify({ ...body, status, title })
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Cache-Control: no-store',
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`)
  platform.log.info({ requestId, status, reason: error.code }, 'broken request')
}

type BrokenRequest = [status: number, code: ErrorCode, detail: string]

const NO_REQUEST: BrokenRequest = [400, 'validation_failed', 'The request cannot be understood.']
/** As with 410, no code stands for these: the nearest one does, and the status says the rest. */
const BROKEN_REQUESTS: Record<string, BrokenRequest> = {
  HPE_HEADER_OVERFLOW: [431, 'payload_too_large', 'The head of the request is too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'validation_failed', 'The request did not come in time.'],
}

/**
 * A number of hops trusts that many peers from our side, at any address: the service must then be reachable
 * through the proxies only. Fastify itself takes a number for "trust none".
 */
function trustProxyOf(setting: Config['TRUST_PROXY']) {
  if (setting === undefined || setting === 'false') return false
  if (typeof setting === 'number') return (_address: string, hop: number) => hop < setting
  return setting === 'true' ? true : setting
}

function followRequests(
  server: FastifyInstance,
  platform: Platform,
  headers: Readonly<Record<string, string>>,
): void {
  server.addHook('onRequest', (request, reply, done) => {
    head(request, reply, headers)
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    logRequest(platform, request, reply, reply.elapsedTime)
    done()
  })
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
    if (pending.length === 0) return { status: 'ready', environment: app.platform.config.NODE_ENV }
    throw new Refusal('unavailable', 'The database has not been migrated yet.', {
      retryAfter: 5,
      internalDetail: `pending migrations: ${pending.join(', ')}`,
    })
  })
}
