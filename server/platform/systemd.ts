import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Logger } from './log.ts'

const run = promisify(execFile)

/** How long until a start that is not healthy yet is examined again. */
const RETRY_MS = 500
/** A `systemd-notify` that hangs must not stop later notifications. */
const SEND_TIMEOUT_MS = 5000

interface SystemdOptions {
  environment: Record<string, string | undefined>
  log: Logger
  /** Whether the service can work: its database answers and is migrated. An error counts as no. */
  isHealthy(): Promise<boolean>
}

/**
 * Notifies systemd (`Type=notify`, see sd_notify(3)): `READY=1` once the service is healthy, then `WATCHDOG=1` at half the unit's
 * `WatchdogSec` while the event loop runs. A database that does not answer shows in the status only, because a restart would not bring it
 * back. Call the returned function when the service stops. Does nothing if systemd does not wait for notifications.
 *
 * Node has no Unix datagram sockets, so systemd's own program sends; the unit needs `NotifyAccess=all`.
 */
export function notifySystemd({ environment, log, isHealthy }: SystemdOptions): () => Promise<void> {
  const { NOTIFY_SOCKET, PATH } = environment
  if (!NOTIFY_SOCKET) return async () => {}
  const stopped = new AbortController()
  const send = async (...assignments: string[]) => {
    try {
      await run('systemd-notify', assignments, { env: { NOTIFY_SOCKET, PATH }, timeout: SEND_TIMEOUT_MS })
    } catch (error) {
      log.error({ err: error }, 'systemd-notify failed; systemd may restart this service')
    }
  }
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopped.signal }).catch(() => {})
  const examine = () => isHealthy().catch(() => false)
  const watch = async () => {
    while (!stopped.signal.aborted && !(await examine())) {
      await send('STATUS=Waiting for the database')
      await pause(RETRY_MS)
    }
    if (stopped.signal.aborted) return
    await send('READY=1', 'STATUS=Ready')
    const interval = watchdogInterval(environment)
    let [status, shown] = ['Ready', 'Ready']
    let isExamining = false
    while (interval !== null && !stopped.signal.aborted) {
      await send('WATCHDOG=1', ...(status === shown ? [] : [`STATUS=${status}`]))
      shown = status
      // Not awaited: a database that hangs must not keep the sign of life back.
      if (!isExamining) {
        isExamining = true
        examine().then((healthy) => {
          status = healthy ? 'Ready' : 'The database does not answer'
          isExamining = false
        })
      }
      await pause(interval)
    }
  }
  const watching = watch()
  return async () => {
    stopped.abort()
    await watching
    await send('STOPPING=1', 'STATUS=Stopping')
  }
}

/** Half of the time in which systemd expects a sign of life; `null` without a watchdog for this process. */
function watchdogInterval({ WATCHDOG_USEC, WATCHDOG_PID }: SystemdOptions['environment']): number | null {
  const microseconds = Number(WATCHDOG_USEC)
  if (!(microseconds > 0)) return null
  if (WATCHDOG_PID && Number(WATCHDOG_PID) !== process.pid) return null
  return Math.min(microseconds / 2000, 2 ** 31 - 1)
}
