import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'

/** UUIDv7s by the story's clock with a counter instead of randomness: a repeated story has the same ids. */
export function simulatedIds(clock: Clock): Ids {
  let count = 0
  return {
    next() {
      count += 1
      const time = clock.now().toString(16).padStart(12, '0')
      return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${count.toString(16).padStart(12, '0')}`
    },
  }
}
