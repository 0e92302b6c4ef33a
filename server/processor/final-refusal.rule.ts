/**
 * How long a processor may take to show the effect of a call whose outcome is unknown, ms. Records of payments are often read from a
 * replica that lags.
 */
export const SHOWN_WITHIN_MS = 600_000
/** Pause between two look-ups during that time, ms. */
export const LOOK_AGAIN_AFTER_MS = 150_000

interface RefusalFacts {
  /** When the latest call under the same key with an unknown outcome was made, epoch ms; `null` without one. */
  unknownAt: number | null
  /** When the processor refused, epoch ms. */
  at: number
}

/**
 * Whether a refusal proves that nothing happened. It speaks only of its own call: an earlier call may have taken effect unseen, and the
 * refusal may even be the answer to that ("already exists"). So it is final immediately only if every earlier try is known to have done
 * nothing, and otherwise once look-ups have had time to show an effect.
 */
export function isFinalRefusal({ unknownAt, at }: RefusalFacts): boolean {
  return unknownAt === null || at - unknownAt >= SHOWN_WITHIN_MS
}
