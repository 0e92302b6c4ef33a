/** How long a replaced destination still receives payouts: time for the owner to notice a takeover of the account. */
export const DESTINATION_DELAY_MS = 24 * 60 * 60 * 1000

/** Epoch ms. */
export interface DestinationTimes {
  createdAt: number
  effectiveAt: number
}

/** From when (epoch ms) a destination given at `now` counts: the first at once, a replacement after the delay. */
export function whenEffective(facts: { hasEarlier: boolean; now: number }): number {
  return facts.hasEarlier ? facts.now + DESTINATION_DELAY_MS : facts.now
}

/**
 * The destination that a payout made at `now` (epoch ms) goes to, or `null` when none is in effect.
 *
 * It is the newest that has come into effect. A replacement that was itself replaced during its delay never comes into
 * effect: otherwise an owner who puts the right account back would still see the wrong one paid for a while.
 * Of two made in the same millisecond the one later in the list is the newer.
 */
export function effectiveDestination<D extends DestinationTimes>(
  destinations: readonly D[],
  now: number,
): D | null {
  const oldestFirst = destinations
    .filter((one) => one.createdAt <= now)
    .sort((a, b) => a.createdAt - b.createdAt)
  const inEffect = oldestFirst.filter((one, index) => {
    const replacedAt = oldestFirst[index + 1]?.createdAt ?? Number.POSITIVE_INFINITY
    return one.effectiveAt <= now && one.effectiveAt <= replacedAt
  })
  return inEffect.at(-1) ?? null
}
