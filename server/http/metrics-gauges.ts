import type { Pool } from 'pg'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { EVENT_SOURCES, type EventSource, eventBacklog } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { liveStreams } from '../summaries/live-streams.ts'
import type { HttpApp } from './http-app.ts'

/** However often somebody reads the figures, the database is asked once in this time. */
const BACKLOG_KEPT_MS = 5000

interface Backlog {
  source: EventSource
  waiting: number
  /** Epoch ms. */
  oldest: number | null
}

/** What is so at the moment of reading. */
export function measureState(registry: Registry, app: HttpApp): void {
  measureBacklog(registry, app.platform)
  measureWrites(registry, app)
  measurePool(registry, app.platform)
  measureStreams(registry, app.platform)
}

function measureStreams(registry: Registry, platform: Platform): void {
  new Gauge({
    name: 'affiliate_event_streams_open',
    help: 'Live streams (server-sent events) that this process holds open.',
    registers: [registry],
    collect() {
      this.set(liveStreams(platform).count)
    },
  })
}

/** The database's part. When it does not answer, its series are left out and `affiliate_database_up` says why. */
function measureBacklog(registry: Registry, platform: Platform): void {
  const read = backlogReader(platform)
  const registers = [registry]
  new Gauge({
    name: 'affiliate_database_up',
    help: 'Whether the database answers.',
    registers,
    async collect() {
      this.set((await read()) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'affiliate_inbox_waiting',
    help: 'Events that are not applied yet; counted up to 10000.',
    labelNames: ['source'],
    registers,
    async collect() {
      this.reset()
      for (const { source, waiting } of (await read()) ?? []) this.set({ source }, waiting)
    },
  })
  new Gauge({
    name: 'affiliate_inbox_oldest_seconds',
    help: 'How long the oldest event that is not applied yet has waited.',
    labelNames: ['source'],
    registers,
    async collect() {
      this.reset()
      const now = platform.clock.now()
      for (const { source, oldest } of (await read()) ?? []) {
        this.set({ source }, oldest === null ? 0 : Math.max(0, now - oldest) / 1000)
      }
    },
  })
}

/** Readers that come while the database is being asked, or shortly after, share one answer; `null` when there is none. */
function backlogReader(platform: Platform): () => Promise<Backlog[] | null> {
  let last: Promise<Backlog[] | null> | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (last && performance.now() - askedAt < BACKLOG_KEPT_MS) return last
    askedAt = performance.now()
    last = Promise.all(
      EVENT_SOURCES.map(async (source) => ({ source, ...(await eventBacklog(platform, source)) })),
    ).catch(() => null)
    return last
  }
}

function measureWrites(registry: Registry, { clicks, inbox }: HttpApp): void {
  new Gauge({
    name: 'affiliate_group_commit_waiting',
    help: 'Requests that wait for the next write of their group.',
    labelNames: ['group'],
    registers: [registry],
    collect() {
      this.set({ group: 'clicks' }, clicks.waiting())
      this.set({ group: 'inbox' }, inbox.waiting())
    },
  })
}

/** PostgreSQL only: SQLite has no pool, and there these series have no values. */
function measurePool(registry: Registry, platform: Platform): void {
  new Gauge({
    name: 'affiliate_database_connections',
    help: 'Connections of the pool to PostgreSQL, and requests that wait for one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const pool = poolOf(platform)
      if (!pool) return
      this.set({ state: 'idle' }, pool.idleCount)
      this.set({ state: 'busy' }, pool.totalCount - pool.idleCount)
      this.set({ state: 'waiting' }, pool.waitingCount)
      this.set({ state: 'most' }, pool.options.max)
    },
  })
}

function poolOf({ database }: Platform): Pool | null {
  return 'pool' in database ? (database.pool as Pool) : null
}

let ofProcess: Registry | undefined

/** Memory, processor time, garbage collection and the event loop's lag: one set a process, however many servers it has. */
export function processMetrics(): Registry {
  if (!ofProcess) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}
