import { watchMarketplace } from '../moderation/watch.service.ts'
import type { Platform } from '../platform/platform.ts'
import { Loop } from './loop.ts'

const EVERY_MS = 60_000

/** Looks for what a person should look at, every minute, and at once again while there is more than one helping. */
export function startModerationLoop(platform: Platform): Loop {
  return new Loop(platform, {
    name: 'moderation',
    signals: [],
    run: () => watchMarketplace(platform),
    nextDueAt: async () => null,
    longestSleepMs: EVERY_MS,
  })
}
