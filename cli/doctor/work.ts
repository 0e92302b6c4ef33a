import { type NotificationBacklog, notificationBacklog } from '../../server/jobs/notification-backlog.ts'
import { failureOf, type ScheduleRunRow } from '../../server/jobs/schedule-runs.service.ts'
import type { Config } from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { printable } from '../../server/platform/printable.ts'
import { liveHosts } from '../../server/processes/processes.service.ts'
import { HOUR_MS } from '../../shared/durations.ts'
import { durationText } from '../terminal/output.ts'
import { type Finding, type Found, ok, warn } from './finding.ts'

const LATE_MS = 5 * 60_000
/** Every schedule that makes sense has run within it. */
const STALE_MS = 26 * HOUR_MS

/** Whether events are applied and scheduled jobs run: the signs that a worker and a scheduler are there. */
export async function examineWork(config: Config, database: OpenDatabase): Promise<Found> {
  const { reader } = database
  const now = Date.now()
  const oldest = await reader
    .selectFrom('inbound_events')
    .select('next_attempt_at')
    .where('state', '=', 'pending')
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  const runs = await reader.selectFrom('schedule_runs').selectAll().orderBy('name').execute()
  const off = Object.entries(config).flatMap(([name, value]) =>
    name.startsWith('SCHEDULE_') && value === 'off' ? [name.slice(9).toLowerCase()] : [],
  )
  return [
    judgeBacklog(oldest ? now - oldest.next_attempt_at : null),
    judgeNotifications(await notificationBacklog(reader, now)),
    config.EXPORT_STORAGE === 'local' ? judgeHosts(await liveHosts(reader)) : null,
    ...runs.filter(({ name }) => !off.includes(name)).map((run) => judgeRun(run, now)),
  ]
}

function judgeHosts(hosts: readonly string[]): Found {
  if (hosts.length < 2) return null
  return warn(
    'exports',
    `export files are local, and the service runs on ${hosts.join(', ')}: no export is made`,
    'Set EXPORT_STORAGE=s3 on every host.',
  )
}

function judgeBacklog(overdueMs: number | null): Finding {
  if (overdueMs === null || overdueMs < LATE_MS) return ok('worker', 'no event waits longer than it should')
  return warn(
    'worker',
    `an event has been due for ${durationText(overdueMs)}`,
    'See that a process with the role worker runs: "affiliate serve" with ROLES.',
  )
}

function judgeNotifications(backlog: readonly NotificationBacklog[]): Finding {
  const late = backlog.filter(({ overdueMs }) => overdueMs >= LATE_MS)
  if (late.length === 0) return ok('notifications', 'no event, webhook or e-mail waits longer than it should')
  return warn(
    'notifications',
    late
      .map(({ kind, waiting, overdueMs }) => `${waiting} ${kind}s wait, due for ${durationText(overdueMs)}`)
      .join('; '),
    'See that a process with the role worker runs, and its log.',
  )
}

function judgeRun(run: ScheduleRunRow, now: number): Finding {
  const { name, started_at, finished_at } = run
  const age = durationText(now - started_at)
  const failure = failureOf(run)
  if (failure !== null) {
    return warn(
      'schedule',
      `${name} failed ${age} ago: ${printable(failure)}`,
      'The scheduler repeats it every 30 s.',
    )
  }
  if (finished_at === null && now - started_at > LATE_MS) {
    return warn(
      'schedule',
      `${name} began ${age} ago and has not finished`,
      'See the log of the scheduler; a restart makes it up.',
    )
  }
  if (now - started_at > STALE_MS) {
    return warn('schedule', `${name} ran ${age} ago`, 'See that a process with the role scheduler runs.')
  }
  return ok('schedule', `${name} ran ${age} ago`)
}
