import type { Pool } from 'pg'
import { Gauge, type Registry } from 'prom-client'
import { openFlagsByKind } from '../../flags/flags.service.ts'
import { EVENT_SOURCES, eventBacklog } from '../../inbox/inbox.service.ts'
import { notificationBacklog } from '../../jobs/notification-backlog.ts'
import { lastRuns } from '../../jobs/schedule-runs.service.ts'
import type { PostgresDatabase } from '../../platform/database/postgresql.ts'
import type { Platform } from '../../platform/platform.ts'
import { liveStreams } from '../../reports/live-streams.ts'
import type { HttpApp } from '../context.ts'

/** However often metrics are scraped, the database is read once in this time. */
const CACHED_MS = 5000

/** Registers the gauges. They are read when metrics are scraped. */
export function registerGauges(registry: Registry, { platform, clicks, inbox }: HttpApp): void {
  const registers = [registry]
  const figures = figureReader(platform)
  new Gauge({
    name: 'affiliate_database_up',
    help: 'Whether the database answers. If it is 0, the inbox, notification, schedule and flag gauges have no values.',
    registers,
    async collect() {
      this.set((await figures()) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'affiliate_inbox_waiting',
    help: 'Events that are not applied yet; counted up to 10000.',
    labelNames: ['source'],
    registers,
    async collect() {
      this.reset()
      for (const { source, waiting } of (await figures())?.backlog ?? []) this.set({ source }, waiting)
    },
  })
  new Gauge({
    name: 'affiliate_inbox_oldest_seconds',
    help: 'Age of the oldest event that is not applied yet.',
    labelNames: ['source'],
    registers,
    async collect() {
      this.reset()
      const now = platform.clock.now()
      for (const { source, oldest } of (await figures())?.backlog ?? []) {
        this.set({ source }, oldest === null ? 0 : Math.max(0, now - oldest) / 1000)
      }
    },
  })
  new Gauge({
    name: 'affiliate_notifications_waiting',
    help: 'Events, webhook deliveries and e-mails that wait to be sent to users; counted up to 10000.',
    labelNames: ['kind'],
    registers,
    async collect() {
      this.reset()
      for (const { kind, waiting } of (await figures())?.notifications ?? []) this.set({ kind }, waiting)
    },
  })
  new Gauge({
    name: 'affiliate_notifications_overdue_seconds',
    help: 'How long the first of them has been due. Deliveries to endpoints that fail do not count.',
    labelNames: ['kind'],
    registers,
    async collect() {
      this.reset()
      for (const { kind, overdueMs } of (await figures())?.notifications ?? []) {
        this.set({ kind }, overdueMs / 1000)
      }
    },
  })
  new Gauge({
    name: 'affiliate_schedule_started_timestamp_seconds',
    help: 'When the last run of a scheduled job started.',
    labelNames: ['schedule'],
    registers,
    async collect() {
      this.reset()
      for (const { name, started_at } of (await figures())?.runs ?? []) {
        this.set({ schedule: name }, started_at / 1000)
      }
    },
  })
  new Gauge({
    name: 'affiliate_schedule_finished',
    help: 'Whether the last run of a scheduled job finished; 0 while it runs and after it failed.',
    labelNames: ['schedule'],
    registers,
    async collect() {
      this.reset()
      for (const { name, finished_at } of (await figures())?.runs ?? []) {
        this.set({ schedule: name }, finished_at === null ? 0 : 1)
      }
    },
  })
  new Gauge({
    name: 'affiliate_flags_open',
    help: 'Flags that wait for an admin.',
    labelNames: ['kind', 'severity'],
    registers,
    async collect() {
      this.reset()
      for (const { kind, severity, count } of (await figures())?.flags ?? []) {
        this.set({ kind, severity }, count)
      }
    },
  })
  new Gauge({
    name: 'affiliate_group_commit_waiting',
    help: 'Requests that wait for the next group commit.',
    labelNames: ['group'],
    registers,
    collect() {
      this.set({ group: 'clicks' }, clicks.waiting())
      this.set({ group: 'inbox' }, inbox.waiting())
    },
  })
  new Gauge({
    name: 'affiliate_database_connections',
    help: 'Connections of the PostgreSQL pools, for reads and writes together, and requests that wait for one. No values with SQLite.',
    labelNames: ['state'],
    registers,
    collect() {
      const pools = poolsOf(platform)
      if (pools.length === 0) return
      const sum = (count: (pool: Pool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
      this.set(
        { state: 'idle' },
        sum((pool) => pool.idleCount),
      )
      this.set(
        { state: 'busy' },
        sum((pool) => pool.totalCount - pool.idleCount),
      )
      this.set(
        { state: 'waiting' },
        sum((pool) => pool.waitingCount),
      )
      this.set(
        { state: 'most' },
        sum((pool) => pool.options.max),
      )
    },
  })
  new Gauge({
    name: 'affiliate_event_streams_open',
    help: 'Open live streams (server-sent events) of this process.',
    registers,
    collect() {
      this.set(liveStreams(platform).count)
    },
  })
}

/** Concurrent and frequent scrapes share the queries; `null` if the database does not answer. */
function figureReader(platform: Platform) {
  const read = () => readFigures(platform).catch(() => null)
  let last: ReturnType<typeof read> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    if (last && performance.now() - readAt < CACHED_MS) return last
    readAt = performance.now()
    last = read()
    return last
  }
}

/** Times are in epoch ms. */
async function readFigures(platform: Platform) {
  const backlog = await Promise.all(
    EVENT_SOURCES.map(async (source) => ({ source, ...(await eventBacklog(platform, source)) })),
  )
  const { reader } = platform.database
  const notifications = await notificationBacklog(reader, platform.clock.now())
  const runs = await lastRuns(platform)
  const flags = await openFlagsByKind(reader)
  return { backlog, notifications, runs, flags }
}

function poolsOf({ database }: Platform): Pool[] {
  return 'pools' in database ? Object.values((database as PostgresDatabase).pools) : []
}
