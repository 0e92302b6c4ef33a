import fastifyCors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import { RATE_LIMIT_HEADERS } from './rate-limit.ts'

/** What a page's script may read of an answer beside the few headers that it always may. */
const EXPOSED = [
  'X-Request-Id',
  'Location',
  'Retry-After',
  'Content-Disposition',
  'X-Offers-Paused',
  ...RATE_LIMIT_HEADERS,
]
const PREFLIGHT_SECONDS = 600

/**
 * Lets the pages of exactly these origins call from a browser. Without any there is no CORS header at all. Credentials
 * stay off: a caller shows its bearer token by itself, and nothing here reads cookies.
 */
export async function allowOrigins(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return
  await server.register(fastifyCors, {
    origin: [...origins],
    credentials: false,
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    // trpc-accept is how tRPC's client asks for a stream, last-event-id how it takes one up again.
    allowedHeaders: ['Authorization', 'Content-Type', 'Trpc-Accept', 'Last-Event-Id'],
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    strictPreflight: false,
  })
}
