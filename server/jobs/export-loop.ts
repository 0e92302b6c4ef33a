import { exportStorage } from '../exports/open-storage.ts'
import { nextExportDueAt, runNextExport, sweepExports } from '../exports/run-export.service.ts'
import type { Platform } from '../platform/platform.ts'
import { Loop } from './loop.ts'

/** How many exports a process writes at once: a long one must not hold up everybody's short ones. */
const LANES = 2
const SWEEP_EVERY_MS = 600_000

/**
 * Starts writing exports, and removing those whose time is over. `stop()` does not wait for a long export: it is put back and
 * begun anew by whoever is there next.
 */
export function startExportLoops(platform: Platform): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const storage = () => exportStorage(platform.config)
  const lanes = Array.from(
    { length: LANES },
    (_, lane) =>
      new Loop(platform, {
        name: `exports ${lane + 1}`,
        signals: ['exports'],
        run: async () => Number(await runNextExport(platform, await storage(), stopping.signal)),
        nextDueAt: () => nextExportDueAt(platform),
      }),
  )
  const sweep = new Loop(platform, {
    name: 'expired exports',
    signals: [],
    run: async () => sweepExports(platform, await storage()),
    nextDueAt: async () => platform.clock.now() + SWEEP_EVERY_MS,
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all([...lanes, sweep].map((loop) => loop.stop()))
    },
  }
}

/** Writes every export that is due now, until none is; for tests and commands that want the end state. */
export async function drainExports(platform: Platform): Promise<number> {
  const storage = await exportStorage(platform.config)
  const { signal } = new AbortController()
  let done = 0
  while (await runNextExport(platform, storage, signal)) done += 1
  return done
}
