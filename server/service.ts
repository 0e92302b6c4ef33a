import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type App, openApp } from './app.ts'
import { createClickRecorder } from './clicks/clicks.service.ts'
import type { HttpApp } from './http/context.ts'
import { createServer } from './http/server.ts'
import { createInboxRecorder } from './inbox/intake.service.ts'
import type { Worker } from './jobs/loop.ts'
import { type Scheduler, startScheduler } from './jobs/scheduler.ts'
import { startWorker } from './jobs/worker.ts'
import { checkRole } from './migrations/grants.ts'
import { subscribeSignals } from './platform/cache/signals.ts'
import { dataFolder, SettingError } from './platform/config.ts'
import { type SandboxAccess, writeSandboxAccess } from './platform/crypto/app-keys.ts'
import { checkAppKey } from './platform/crypto/key-mark.ts'
import {
  migrationState,
  refuseNewerDatabase,
  refuseReadOnlyServer,
} from './platform/database/migration-state.ts'
import type { OpenDatabase } from './platform/database/open-database.ts'
import { refuseUnsuitableServer } from './platform/database/server-settings.ts'
import { joinProcesses, type Presence } from './processes/processes.service.ts'
import type { Sandbox } from './processor/sandbox/start-sandbox.ts'
import { markProduction } from './production-mark.ts'
import { passwordResetsIdle } from './users/account-recovery.service.ts'

export interface Service {
  app: App
  /** `http://host:port` of the web role; `null` without it. */
  url: string | null
  sandboxUrl: string | null
  /** Names of the migrations that this start applied. */
  migrated: string[]
  /**
   * Makes `/readyz` answer 503 for DRAIN_SECONDS while requests are still served, so that a load balancer takes the process out before
   * it stops. Connections end with their next response. Resolves at once without the role web.
   */
  drain(): Promise<void>
  /** Stops taking requests, finishes what is under way, and closes everything. Then throws the first error of a part, if any. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  environment?: Record<string, string | undefined>
  /** Adds routes and hooks to the role web, for development. */
  extend?: (server: FastifyInstance, app: App) => void
}

/** Starts the roles that ROLES names in this process, on a database that it migrates first. */
export async function startService({ extend, ...options }: ServiceOptions = {}): Promise<Service> {
  let listening: string | null = null
  let sandbox: Sandbox | null = null
  let drain = async () => {}
  const app = await openApp({
    ...options,
    create: true,
    ownUrl: () => listening,
    sandboxUrl: () => sandbox?.url ?? null,
  })
  const stops: (() => Promise<void>)[] = [() => app.close()]
  const stop = async () => {
    const errors: unknown[] = []
    // A part that fails must not keep the others running, or the process would never end.
    for (const end of stops.splice(0).reverse()) {
      await end().catch((error: unknown) => errors.push(error))
    }
    if (errors.length > 0) throw errors[0]
  }
  try {
    const { config } = app.platform
    const migrated = await migrateWhatIsPending(app.database)
    await checkAppKey(app.database, app.platform.vault)
    await markProduction(app.database, config)
    const { refuseRetiredKey } = await import('./ledger/seals/seals.service.ts')
    await refuseRetiredKey(app.platform)
    const presence = await joinProcesses(app.platform)
    stops.push(() => presence.stop())
    if (config.ROLES.includes('web') || config.ROLES.includes('worker')) {
      const news = subscribeSignals(app.platform, app.database)
      stops.push(() => news.stop())
    }
    if (config.ROLES.includes('web')) {
      const web = await startWeb(app, presence, extend && ((server) => extend(server, app)))
      stops.push(web.stop)
      listening = web.url
      drain = web.drain
    } else if (config.HEALTH_PORT !== undefined) {
      stops.push(await startHealth(app, config.HEALTH_PORT, presence))
    }
    if (app.sandbox && !config.PROCESSOR_URL && config.ROLES.includes('worker')) {
      sandbox = await runSandbox(app, app.sandbox, () => listening)
      stops.push(() => endSandbox(app, sandbox))
    }
    const background: (Worker | Scheduler)[] = []
    if (config.ROLES.includes('worker')) background.push(startWorker(app))
    if (config.ROLES.includes('scheduler')) background.push(startScheduler(app.platform, app.processor))
    for (const part of background) stops.push(() => part.stop())
    return { app, url: listening, sandboxUrl: sandbox?.url ?? null, migrated, drain, stop }
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}

/** The migrator and the schema take longer to load than a server needs to start, and most starts find nothing to do. */
async function migrateWhatIsPending(database: OpenDatabase): Promise<string[]> {
  await refuseUnsuitableServer(database)
  const state = await migrationState(database)
  refuseNewerDatabase(state)
  await checkRole(database, state.pending)
  if (state.pending.length === 0) return []
  const { migrate } = await import('./migrator.ts')
  return migrate(database)
}

/** What every server of this process shows. */
function httpApp(app: App, presence: Presence): HttpApp {
  const { platform } = app
  return {
    platform,
    clicks: createClickRecorder(platform),
    inbox: createInboxRecorder(platform),
    processorSignature: app.processorSignature,
    clockSkew: () => presence.clockSkew(),
    writeFailure: () => presence.writeFailure(),
    async pendingMigrations() {
      await refuseReadOnlyServer(app.database)
      return (await migrationState(app.database)).pending
    },
  }
}

async function startWeb(app: App, presence: Presence, extend: HttpApp['extend']) {
  const { HOST, PORT, DRAIN_SECONDS } = app.platform.config
  let isDraining = false
  const shown = { ...httpApp(app, presence), isDraining: () => isDraining, ...(extend && { extend }) }
  const server = await createServer(shown)
  const url = await server.listen({ host: HOST, port: PORT })
  return {
    url,
    async drain() {
      isDraining = true
      // Node answers the next request of each connection with `Connection: close`.
      server.server.maxRequestsPerSocket = 1
      await pause(DRAIN_SECONDS * 1000)
    },
    async stop() {
      await server.close()
      await Promise.all([shown.clicks.idle(), shown.inbox.idle(), passwordResetsIdle(app.platform)])
    },
  }
}

async function startHealth(app: App, port: number, presence: Presence): Promise<() => Promise<void>> {
  const { createHealthServer } = await import('./http/health.ts')
  const server = createHealthServer(httpApp(app, presence))
  await server.listen({ host: app.platform.config.HOST, port })
  return () => server.close()
}

/**
 * The sandbox keeps its own state in a file, so that it forgets nothing when the service is killed. Refuses the folder of
 * another process' running sandbox, whose address would be overwritten.
 */
async function runSandbox(app: App, access: SandboxAccess, ownUrl: () => string | null): Promise<Sandbox> {
  const { startSandbox } = await import('./processor/sandbox/start-sandbox.ts')
  const folder = dataFolder(app.platform.config)
  const sandbox = await startSandbox({
    databasePath: join(folder, 'sandbox.db'),
    host: '127.0.0.1',
    port: 0,
    apiKey: access.api_key,
    webhookSecret: access.webhook_secret,
    webhookUrl: () => `${ownUrl() ?? app.platform.publicBaseUrl}/webhooks/processor`,
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'SQLITE_BUSY') throw error
    throw new SettingError(
      'DATA_DIR',
      `${folder} has a sandbox processor that another process runs: end that one, give this one another DATA_DIR, or set PROCESSOR_URL to the running sandbox`,
    )
  })
  writeSandboxAccess(app.platform.config, { ...access, url: sandbox.url })
  return sandbox
}

async function endSandbox(app: App, sandbox: Sandbox | null): Promise<void> {
  await sandbox?.close()
  const { config } = app.platform
  const folder = dataFolder(config)
  if (!existsSync(folder)) {
    throw new SettingError(
      'DATA_DIR',
      `${folder} was deleted while the service ran; what it wrote there is lost`,
    )
  }
  if (app.sandbox) writeSandboxAccess(config, { ...app.sandbox, url: null })
}
