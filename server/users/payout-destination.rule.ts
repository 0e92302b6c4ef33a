import { DAY_MS } from '../../shared/durations.ts'

/** How long a replaced destination still receives payouts: time for the owner to notice that someone else uses the account. */
export const DESTINATION_DELAY_MS = DAY_MS

/** Epoch ms. */
interface DestinationTimes {
  created_at: number
  effective_at: number
}

/** When (epoch ms) a destination added at `now` takes effect: the first immediately, a replacement after the delay. */
export function whenEffective(facts: { hasEarlier: boolean; now: number }): number {
  return facts.hasEarlier ? facts.now + DESTINATION_DELAY_MS : facts.now
}

/**
 * The destination that a payout made at `now` (epoch ms) goes to, or `null` when none is in effect.
 *
 * It is the newest in effect. A replacement that was replaced during its own delay never takes effect: otherwise an owner who
 * restores the right account would still see the wrong one paid. Of two made in the same millisecond the later in the list is the newer.
 */
export function effectiveDestination<D extends DestinationTimes>(
  destinations: readonly D[],
  now: number,
): D | null {
  const given = inOrder(destinations.filter((one) => one.created_at <= now))
  return given.filter((_, index) => effectAt(given, index, now) === 'in_effect').at(-1) ?? null
}

/**
 * The state of one of a user's destinations at `now` (epoch ms), whether or not a later one is in effect too. `in_effect`: it has come
 * into effect; `waiting`: its delay is not over; `never`: it was replaced during its delay.
 */
export function effectOf<D extends DestinationTimes>(destinations: readonly D[], one: D, now: number) {
  const given = inOrder(destinations)
  return effectAt(given, given.indexOf(one), now)
}

function inOrder<D extends DestinationTimes>(destinations: readonly D[]): D[] {
  return destinations.toSorted((a, b) => a.created_at - b.created_at)
}

function effectAt(given: readonly DestinationTimes[], index: number, now: number) {
  const effectiveAt = given[index]?.effective_at ?? Number.POSITIVE_INFINITY
  const replacedAt = given[index + 1]?.created_at ?? Number.POSITIVE_INFINITY
  if (effectiveAt > replacedAt) return 'never'
  return effectiveAt <= now ? 'in_effect' : 'waiting'
}
