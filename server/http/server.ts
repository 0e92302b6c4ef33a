import { compile } from '@fastify/proxy-addr'
import fastify, { type FastifyInstance } from 'fastify'
import { NO_SCHEMAS } from '../platform/api/no-schemas.ts'
import type { Config } from '../platform/config.ts'
import { withStatementTimeout } from '../platform/database/database.ts'
import { forwardedAddress } from '../platform/network/client-address.ts'
import { registerAccountPages } from './account-pages.ts'
import { registerClientPackage } from './client-package.ts'
import { answerBrokenRequest, keepConnections } from './connections.ts'
import type { HttpApp } from './context.ts'
import { registerDocs, registerIndex, registerSecurityTxt } from './docs.ts'
import { logRequest, sendProblem } from './errors.ts'
import { registerGuides } from './guides/guides.ts'
import { registerProbes } from './health.ts'
import { registerJobFile } from './job-file.ts'
import { createMetrics, type Metrics, registerMetrics } from './metrics/metrics.ts'
import { openApiDocument } from './openapi/openapi.ts'
import { sendPage, type Zipped, zip } from './pages.ts'
import { registerPortal } from './portal.ts'
import { createRateLimits, type RateLimits } from './rate-limit.ts'
import { followTyped, registerRedirect } from './redirect.ts'
import { endEmptyBodies } from './request-body.ts'
import { registerRest } from './rest.ts'
import { appRouter } from './router.ts'
import { allowOrigins, setDefaultHeaders } from './security-headers.ts'
import { registerStoreScript } from './store-script.ts'
import { registerTrpc } from './trpc.ts'
import { answerUnknownRoutes, collectRoutes, refuseEmptyParameters } from './unknown-routes.ts'
import { registerWebhooks } from './webhooks/webhooks.ts'

const MAX_BODY_BYTES = 256 * 1024
/** Request line and headers together. */
const MAX_HEADER_BYTES = 16 * 1024
/** A tRPC batch has its procedures' names in the path. */
const MAX_PARAM_LENGTH = 1000
const REQUEST_TIMEOUT_MS = 30_000
/** For the headers of a request, and for the first request of a connection. */
const HEADERS_TIMEOUT_MS = 10_000
const CONNECTIONS_CHECK_MS = 2_000
/** Each connection takes about 20 KB. */
const MAX_CONNECTIONS = 5000
/** Longer than the idle timeout of common load balancers (60 s), so that they close connections first. */
const KEEP_ALIVE_MS = 65_000

/** The web server with every route, ready to listen. `close()` waits for running requests. */
export async function createServer(app: HttpApp): Promise<FastifyInstance> {
  const { platform } = app
  const server = fastify({
    logger: false,
    genReqId: () => platform.ids.next(),
    trustProxy: trustProxyOf(platform.config.TRUST_PROXY),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Skips the body stream of requests without a body, which is most of them; see `endEmptyBodies`.
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      optimizeEmptyRequests: true,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CONNECTIONS_CHECK_MS,
    },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    return503OnClosing: false,
    ...NO_SCHEMAS,
    clientErrorHandler: (error, socket) => answerBrokenRequest(platform, error, socket),
    frameworkErrors: (error, request, reply) => {
      // Apps cut the ends of links, and append long parameters.
      if (followTyped(app, request, reply)) return
      // Hooks do not run for these errors.
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
  keepConnections(server, platform.config.TRUST_PROXY === undefined ? MAX_CONNECTIONS / 4 : null)
  const known = collectRoutes(server)
  const metrics = createMetrics(app)
  app.extend?.(server)
  // Two scopes, so that the hot paths run few hooks.
  await server.register((scope) => registerHotPaths(scope, metrics))
  await server.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      setDefaultHeaders(request, reply)
      done()
    })
    scope.addHook('onResponse', (request, reply, done) => {
      metrics.recordTime(request, reply)
      logRequest(platform, request, reply, reply.elapsedTime)
      done()
    })
    answerUnknownRoutes(scope, platform, known, (...visit) => followTyped(app, ...visit))
    await registerOthers(scope, metrics)
  })
  await server.ready()
  return server
}

/** The redirect, the webhooks and the stores' script. Their successful responses have fewer headers; see `setShortHeaders`. */
async function registerHotPaths(scope: FastifyInstance, { counted, recordTime }: Metrics): Promise<void> {
  const { platform } = counted
  scope.addHook('onResponse', (request, reply, done) => {
    recordTime(request, reply)
    // Refusals are counted, not logged: anyone can cause thousands a second.
    if (reply.statusCode >= 500 || platform.log.isLevelEnabled('debug')) {
      logRequest(platform, request, reply, reply.elapsedTime)
    }
    done()
  })
  scope.setErrorHandler((error, request, reply) =>
    sendProblem(platform, request, setDefaultHeaders(request, reply), error),
  )
  registerRedirect(scope, counted)
  registerStoreScript(scope, counted)
  await registerWebhooks(scope, counted)
}

async function registerOthers(scope: FastifyInstance, metrics: Metrics): Promise<void> {
  const app = metrics.counted
  const { platform } = app
  scope.addHook('preHandler', (_request, _reply, done) => withStatementTimeout(done))
  endEmptyBodies(scope)
  await allowOrigins(scope, platform.config.CORS_ORIGINS ?? [])
  refuseEmptyParameters(scope)
  const limits = createRateLimits(platform, appRouter)
  registerMetrics(scope, metrics)
  registerProbes(scope, app)
  registerSecurityTxt(scope, platform, limits.admitPublic)
  // Built at the first request: the public URL may be known only once the server listens.
  let built: Record<string, unknown> | undefined
  const document = () => {
    built ??= openApiDocument(appRouter, platform.publicBaseUrl)
    return built
  }
  registerOpenApi(scope, document, limits)
  registerClientPackage(scope, app, limits.admitPublic)
  registerIndex(scope, platform, limits.admitPublic)
  registerDocs(scope, platform, document, limits.admitPublic)
  registerAccountPages(scope, platform, limits.admitPublic)
  registerGuides(scope, platform, limits.admitPublic)
  registerPortal(scope, app, limits.admitPublic)
  registerRest(scope, platform, appRouter, limits.admit)
  registerTrpc(scope, platform, appRouter, limits.admit)
  registerJobFile(scope, app, limits)
}

/**
 * A number trusts that many proxy hops, whatever their address; the service must then be reachable through the proxies
 * only. Fastify's own number setting means something else.
 */
function trustProxyOf(setting: Config['TRUST_PROXY']) {
  if (setting === undefined || setting === 'false') return false
  if (typeof setting === 'number') return (_address: string, hop: number) => hop < setting
  if (setting === 'true') return true
  const isTrusted = compile(setting.split(','))
  return (address: string, hop: number) => isTrusted(forwardedAddress(address), hop)
}

function registerOpenApi(
  server: FastifyInstance,
  document: () => Record<string, unknown>,
  limits: RateLimits,
): void {
  let page: Promise<Zipped> | undefined
  server.get('/openapi.json', { onRequest: limits.admitPublic }, async (request, reply) => {
    page ??= zip(Buffer.from(JSON.stringify(document())))
    reply.type('application/json; charset=utf-8').header('cache-control', 'public, no-cache')
    return sendPage(request, reply, await page)
  })
}
