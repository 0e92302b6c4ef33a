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

type Labels = Record<string, string>
type Series = readonly (readonly [Labels, number])[]

/** Registers the gauges. They are read when metrics are scraped; those of the database have no values while that does not answer. */
export function registerGauges(registry: Registry, { platform, clicks, inbox }: HttpApp): void {
  const figures = figureReader(platform)
  const gauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (all: Figures | null) => Series | undefined,
  ) =>
    new Gauge({
      name: `affiliate_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const series = read(await figures())
        this.reset()
        for (const [labels, value] of series ?? []) this.set(labels, value)
      },
    })

  gauge(
    'database_up',
    'Whether the database answers. If it is 0, the inbox, notification, schedule and flag gauges have no values.',
    [],
    (all) => [[{}, all ? 1 : 0]],
  )
  gauge('inbox_waiting', 'Events that are not applied yet; counted up to 10000.', ['source'], (all) =>
    all?.backlog.map(({ source, waiting }) => [{ source }, waiting]),
  )
  gauge('inbox_oldest_seconds', 'Age of the oldest event that is not applied yet.', ['source'], (all) => {
    const now = platform.clock.now()
    return all?.backlog.map(({ source, oldest }) => [{ source }, Math.max(0, now - (oldest ?? now)) / 1000])
  })
  gauge(
    'notifications_waiting',
    'Events, webhook deliveries and e-mails that wait to be sent to users; counted up to 10000.',
    ['kind'],
    (all) => all?.notifications.map(({ kind, waiting }) => [{ kind }, waiting]),
  )
  gauge(
    'notifications_overdue_seconds',
    'How long the first of them has been due. Deliveries to endpoints that fail do not count.',
    ['kind'],
    (all) => all?.notifications.map(({ kind, overdueMs }) => [{ kind }, overdueMs / 1000]),
  )
  gauge(
    'schedule_started_timestamp_seconds',
    'When the last run of a scheduled job started.',
    ['schedule'],
    (all) => all?.runs.map(({ name, started_at }) => [{ schedule: name }, started_at / 1000]),
  )
  gauge(
    'schedule_finished',
    'Whether the last run of a scheduled job finished; 0 while it runs and after it failed.',
    ['schedule'],
    (all) => all?.runs.map(({ name, finished_at }) => [{ schedule: name }, finished_at === null ? 0 : 1]),
  )
  gauge('flags_open', 'Flags that wait for an admin.', ['kind', 'severity'], (all) =>
    all?.flags.map(({ kind, severity, count }) => [{ kind, severity }, count]),
  )
  gauge('group_commit_waiting', 'Requests that wait for the next group commit.', ['group'], () => [
    [{ group: 'clicks' }, clicks.waiting()],
    [{ group: 'inbox' }, inbox.waiting()],
  ])
  gauge(
    'database_connections',
    'Connections of the PostgreSQL pools, for reads and writes together, and requests that wait for one. No values with SQLite.',
    ['state'],
    () => connectionsOf(platform),
  )
  gauge('event_streams_open', 'Open live streams (server-sent events) of this process.', [], () => [
    [{}, liveStreams(platform).count],
  ])
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

type Figures = Awaited<ReturnType<typeof readFigures>>

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

function connectionsOf({ database }: Platform): Series {
  if (!('pools' in database)) return []
  const pools = Object.values((database as PostgresDatabase).pools)
  const states: Record<string, (pool: Pool) => number> = {
    idle: (pool) => pool.idleCount,
    busy: (pool) => pool.totalCount - pool.idleCount,
    waiting: (pool) => pool.waitingCount,
    most: (pool) => pool.options.max,
  }
  return Object.entries(states).map(([state, count]) => [
    { state },
    pools.reduce((sum, pool) => sum + count(pool), 0),
  ])
}
