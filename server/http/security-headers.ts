import fastifyCors from '@fastify/cors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IDEMPOTENCY_HEADER } from '../platform/api/idempotency.ts'
import { RATE_LIMIT_HEADERS } from './rate-limit.ts'

/**
 * The security headers of every response. Responses are data, so nothing in them may load, run or be framed; `/docs` sets a
 * policy of its own. HSTS leaves out `includeSubDomains`: the operator's other subdomains may not use TLS.
 */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'DENY',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
}

const SHORT_HEADERS = {
  'cross-origin-resource-policy': SECURITY_HEADERS['cross-origin-resource-policy'],
  'strict-transport-security': SECURITY_HEADERS['strict-transport-security'],
  'x-content-type-options': SECURITY_HEADERS['x-content-type-options'],
  'cache-control': 'no-store',
}

/** Sets the headers of every response. Most responses are private, so `no-store` is the default. */
export function setDefaultHeaders(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .headers(SECURITY_HEADERS)
    .header('x-request-id', request.id)
    .header('cache-control', 'no-store')
}

/**
 * Sets the headers of redirects and webhook receipts, which browsers do not render. `cross-origin-resource-policy` keeps other
 * sites from loading a link as an image, which would count as a visit.
 */
export function setShortHeaders(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.headers(SHORT_HEADERS).header('x-request-id', request.id)
}

/** Response headers that scripts of other origins may read. */
const EXPOSED = [
  'X-Request-Id',
  'Location',
  'Retry-After',
  'Content-Disposition',
  'X-Offers-Paused',
  ...RATE_LIMIT_HEADERS,
]
const PREFLIGHT_SECONDS = 600

/** Allows browser calls from these origins; without any there are no CORS headers. No credentials: callers send a bearer token. */
export async function allowOrigins(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return
  await server.register(fastifyCors, {
    origin: [...origins],
    credentials: false,
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    // tRPC's client sends Trpc-Accept and Last-Event-Id for event streams.
    allowedHeaders: ['Authorization', 'Content-Type', IDEMPOTENCY_HEADER, 'Trpc-Accept', 'Last-Event-Id'],
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    strictPreflight: false,
  })
}
