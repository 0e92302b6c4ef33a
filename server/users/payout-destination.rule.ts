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
  const given = inOrder(destinations.filter((one) => one.createdAt <= now))
  return given.filter((_, index) => effectAt(given, index, now) === 'in_effect').at(-1) ?? null
}

/** `in_effect`: it has come into effect; `waiting`: its delay is not over; `never`: it was replaced during its delay. */
export type DestinationEffect = 'in_effect' | 'waiting' | 'never'

/** What has become of one of a user's destinations by `now` (epoch ms), whether or not a later one is in effect too. */
export function effectOf<D extends DestinationTimes>(
  destinations: readonly D[],
  one: D,
  now: number,
): DestinationEffect {
  const given = inOrder(destinations)
  return effectAt(given, given.indexOf(one), now)
}

function inOrder<D extends DestinationTimes>(destinations: readonly D[]): D[] {
  return destinations.toSorted((a, b) => a.createdAt - b.createdAt)
}

function effectAt(given: readonly DestinationTimes[], index: number, now: number): DestinationEffect {
  const effectiveAt = given[index]?.effectiveAt ?? Number.POSITIVE_INFINITY
  const replacedAt = given[index + 1]?.createdAt ?? Number.POSITIVE_INFINITY
  if (effectiveAt > replacedAt) return 'never'
  return effectiveAt <= now ? 'in_effect' : 'waiting'
}
