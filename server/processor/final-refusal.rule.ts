/**
 * How long, after a call whose outcome nobody heard, a processor may take to show what became of it, in ms. Records of
 * payments are often read from a copy that lags behind the one that is written.
 */
export const SHOWN_WITHIN_MS = 600_000
/** How long is waited between two looks while that time runs, in ms. */
export const LOOK_AGAIN_AFTER_MS = 150_000

export interface RefusalFacts {
  /** When a call was made last, under the same key, of which nobody knows whether it took effect, epoch ms; `null`: there was none. */
  unknownAt: number | null
  /** When the processor refused, epoch ms. */
  at: number
}

/**
 * Whether a refusal says that nothing happened. It speaks of its own call alone: an earlier one may have taken effect unheard, and
 * the refusal may even be the answer to that ("there is one already"). So it counts at once only where every earlier try is known to have
 * done nothing, and else when look-ups have had the time to show what is there.
 */
export function isFinalRefusal({ unknownAt, at }: RefusalFacts): boolean {
  return unknownAt === null || at - unknownAt >= SHOWN_WITHIN_MS
}
