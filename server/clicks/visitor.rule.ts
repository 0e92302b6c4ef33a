/** Further visits of one visitor to one link within this time count as repeats. */
export const REPEAT_WITHIN_MS = 3_600_000

/**
 * Whether a visit at `at` repeats the one counted at `countedAt` (epoch ms). The hour starts at the counted visit, so a frequent visitor
 * counts once an hour. A clock that was set back by more than an hour counts again.
 */
export function isRepeat(countedAt: number | undefined, at: number): boolean {
  return countedAt !== undefined && Math.abs(at - countedAt) < REPEAT_WITHIN_MS
}
