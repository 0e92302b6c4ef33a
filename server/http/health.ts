import fastify, { type FastifyInstance } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'
import { isReadOnly } from '../platform/database/database-faults.ts'
import { MAX_SKEW_MS, skewText } from '../processes/clock-skew.rule.ts'
import type { HttpApp } from './context.ts'
import { sendProblem } from './errors.ts'
import { createMetrics, registerMetrics } from './metrics/metrics.ts'

/** Liveness: the process answers. Readiness: the database answers and is migrated, this machine's clock
 * agrees with its, and the process is not about to stop. */
export function registerProbes(server: FastifyInstance, app: HttpApp): void {
  server.get('/healthz', async () => ({ status: 'ok' }))
  server.get('/readyz', async () => {
    if (app.isDraining?.()) {
      throw new Refusal('unavailable', 'This process is about to stop.', { retryAfter: 1 })
    }
    const skew = app.clockSkew?.() ?? 0
    if (Math.abs(skew) > MAX_SKEW_MS) {
      throw new Refusal('unavailable', `This machine's clock is ${skewText(skew)}.`, { retryAfter: 5 })
    }
    const pending = await app.pendingMigrations().catch(refuseStandby)
    if (pending.length === 0) return { status: 'ready', environment: app.platform.config.NODE_ENV }
    throw new Refusal('unavailable', 'The database has pending migrations. Run "affiliate db migrate".', {
      retryAfter: 5,
      internalDetail: `pending migrations: ${pending.join(', ')}`,
    })
  })
}

/** Says what is wrong where the server takes reads only; other errors are answered as everywhere. */
function refuseStandby(error: unknown): never {
  if (!isReadOnly(error)) throw error
  throw new Refusal(
    'unavailable',
    'The database takes reads only, as a standby does. DATABASE_URL must name the primary.',
    { retryAfter: 1 },
  )
}

/** The probes and metrics of a process without the role web. */
export function createHealthServer(app: HttpApp): FastifyInstance {
  const { platform } = app
  const server = fastify({ logger: false, genReqId: () => platform.ids.next(), return503OnClosing: false })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  registerProbes(server, app)
  registerMetrics(server, createMetrics(app))
  return server
}
