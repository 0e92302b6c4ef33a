import { type NotificationBacklog, notificationBacklog } from '../../server/jobs/notification-backlog.ts'
import { failureOf, type ScheduleRunRow } from '../../server/jobs/schedule-runs.service.ts'
import type { Config } from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { printable } from '../../server/platform/printable.ts'
import { liveHosts } from '../../server/processes/processes.service.ts'
import { HOUR_MS } from '../../shared/durations.ts'
import { durationText } from '../terminal/output.ts'
import { about, type Finding, type Found } from './finding.ts'

const exports = about('exports')
const worker = about('worker')
const notifications = about('notifications')
const schedule = about('schedule')

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
  const isOff = (name: string) =>
    new Map(Object.entries(config)).get(`SCHEDULE_${name.toUpperCase()}`) === 'off'
  return [
    judgeBacklog(oldest ? now - oldest.next_attempt_at : 0),
    judgeNotifications(await notificationBacklog(reader, now)),
    config.EXPORT_STORAGE === 'local' ? judgeHosts(await liveHosts(reader)) : null,
    runs.map((run) => (isOff(run.name) ? null : judgeRun(run, now))),
  ]
}

function judgeHosts(hosts: readonly string[]): Found {
  if (hosts.length < 2) return null
  return exports.warn(
    `export files are local, and the service runs on ${hosts.join(', ')}: no export is made`,
    'Set EXPORT_STORAGE=s3 on every host.',
  )
}

function judgeBacklog(overdueMs: number): Finding {
  if (overdueMs < LATE_MS) return worker.ok('no event waits longer than it should')
  const mend = 'See that a process with the role worker runs: "affiliate serve" with ROLES.'
  return worker.warn(`an event has been due for ${durationText(overdueMs)}`, mend)
}

function judgeNotifications(backlog: readonly NotificationBacklog[]): Finding {
  const late = backlog
    .filter(({ overdueMs }) => overdueMs >= LATE_MS)
    .map(({ kind, waiting, overdueMs }) => `${waiting} ${kind}s wait, due for ${durationText(overdueMs)}`)
  if (late.length === 0) return notifications.ok('no event, webhook or e-mail waits longer than it should')
  return notifications.warn(late.join('; '), 'See that a process with the role worker runs, and its log.')
}

function judgeRun(run: ScheduleRunRow, now: number): Finding {
  const { name, started_at, finished_at } = run
  const age = durationText(now - started_at)
  const failure = failureOf(run)
  if (failure !== null) {
    const detail = `${name} failed ${age} ago: ${printable(failure)}`
    return schedule.warn(detail, 'The scheduler repeats it every 30 s.')
  }
  if (finished_at === null && now - started_at > LATE_MS) {
    const detail = `${name} began ${age} ago and has not finished`
    return schedule.warn(detail, 'See the log of the scheduler; a restart makes it up.')
  }
  if (now - started_at > STALE_MS) {
    return schedule.warn(`${name} ran ${age} ago`, 'See that a process with the role scheduler runs.')
  }
  return schedule.ok(`${name} ran ${age} ago`)
}
