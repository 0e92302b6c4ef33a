import { exportStorage } from '../exports/exports.service.ts'
import { nextExportDueAt, runNextExport, sweepExports } from '../exports/run-export.service.ts'
import type { Platform } from '../platform/platform.ts'
import { Loop } from './loop.ts'

/** How many exports a process writes together, so that a long one does not hold up short ones of other users. */
const CONCURRENCY = 2
const SWEEP_EVERY_MS = 600_000

/**
 * Starts writing exports and removing expired files. `stop()` does not wait for a long export: it is released, and the next worker starts
 * it again.
 */
export function startExportLoops(platform: Platform): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const storage = () => exportStorage(platform.config)
  const writers = Array.from(
    { length: CONCURRENCY },
    (_, index) =>
      new Loop(platform, {
        name: `exports ${index + 1}`,
        isLong: true,
        signals: ['exports'],
        run: async () => Number(await runNextExport(platform, await storage(), stopping.signal)),
        nextDueAt: () => nextExportDueAt(platform),
      }),
  )
  const sweep = new Loop(platform, {
    name: 'expired exports',
    run: async () => sweepExports(platform, await storage()),
    longestSleepMs: SWEEP_EVERY_MS,
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all([...writers, sweep].map((loop) => loop.stop()))
    },
  }
}
