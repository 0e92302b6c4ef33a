import type { Service } from './service.ts'

/** The terminal and npm both send a Ctrl-C: two signals within this time count as one. */
const SAME_SIGNAL_MS = 250
/** What is under way has this long to finish, ms. Everything acknowledged is on disk already. */
const STOP_WITHIN_MS = 20_000

/** Resolves with the first signal to end (SIGINT, SIGTERM); the second one ends the process at once. */
export function catchSignals(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstAt: number | null = null
    for (const [signal, number] of [['SIGINT', 2] as const, ['SIGTERM', 15] as const]) {
      process.on(signal, () => {
        if (firstAt !== null && performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(128 + number)
        firstAt ??= performance.now()
        resolve(signal)
      })
    }
  })
}

/** Ends a service after a signal, or `null` after an error. After SIGTERM it drains first. */
export async function endService(service: Service, signal: NodeJS.Signals | null): Promise<void> {
  if (signal === 'SIGTERM') await service.drain()
  // Ends the process although a part hangs, such as a database that does not answer.
  setTimeout(() => {
    service.app.platform.log.error('the service did not stop within 20 seconds; the process ends now')
    process.exit(1)
  }, STOP_WITHIN_MS).unref()
  await service.stop()
}
