import type { Conduct } from './round.ts'
import type { World } from './world.ts'

/** About as long as the longest stage takes without a death, ms. */
const WITHIN_MS = 400
/** About as long as a start takes, ms. */
const BOOT_MS = 2000
/** How often a server that has just died is killed again while it comes up. */
const AGAIN = 0.25

/** Kills the server at some moment of each stage, and now and then once more while it comes up again. */
export function dieAtRandom(world: World, random: () => number): Conduct {
  return async (_stage, work) => {
    let timer: NodeJS.Timeout | undefined
    const killIn = (ms: number) => {
      timer = setTimeout(() => {
        void world.server.kill()
        if (random() < AGAIN) killIn(random() * BOOT_MS)
      }, ms)
    }
    killIn(random() * WITHIN_MS)
    try {
      await work()
    } finally {
      clearTimeout(timer)
    }
  }
}
