import fastifyCors from '@fastify/cors'
import type { FastifyInstance } from 'fastify'
import { RATE_LIMIT_HEADERS } from './rate-limit.ts'

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
    allowedHeaders: ['Authorization', 'Content-Type', 'Trpc-Accept', 'Last-Event-Id'],
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    strictPreflight: false,
  })
}
