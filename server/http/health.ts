import fastify, { type FastifyInstance } from 'fastify'
import { NO_SCHEMAS } from '../platform/api/no-schemas.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { databaseProblem } from '../platform/database/database-problems.ts'
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
    const pending = await app.pendingMigrations().catch(refuseUnusable)
    const failure = app.writeFailure?.() ?? null
    if (failure !== null) {
      const reason = databaseProblem(failure)?.says ?? 'The log has the error.'
      throw new Refusal('unavailable', `Writes to the database fail. ${reason}`, { retryAfter: 1 })
    }
    if (pending.length === 0) return { status: 'ready', environment: app.platform.config.NODE_ENV }
    throw new Refusal('unavailable', 'The database has pending migrations. Run "affiliate db migrate".', {
      retryAfter: 5,
      internalDetail: `pending migrations: ${pending.join(', ')}`,
    })
  })
}

/** Says why the database cannot be used; other errors are answered as everywhere. */
function refuseUnusable(error: unknown): never {
  const problem = databaseProblem(error)
  if (problem === null) throw error
  throw new Refusal('unavailable', problem.says, { retryAfter: 1, internalDetail: String(error) })
}

/** The probes and metrics of a process without the role web. */
export function createHealthServer(app: HttpApp): FastifyInstance {
  const { platform } = app
  const genReqId = () => platform.ids.next()
  const server = fastify({ logger: false, genReqId, return503OnClosing: false, ...NO_SCHEMAS })
  server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
  registerProbes(server, app)
  registerMetrics(server, createMetrics(app))
  return server
}
