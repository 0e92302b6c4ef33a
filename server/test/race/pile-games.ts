import { PiledOrders } from '../testkit/piled-orders.ts'
import { differs, type Game, type Outcome, PAST_EVENT_LEASE } from './game.ts'
import type { PileDrained } from './tasks.ts'

const STORES = 3
/** Several batches for each side. */
const BATCH = 4
const DELIVERIES = 24

/** Much has piled up, and both workers have a thread that reads it ahead: all of it, the first of it, or as much as it gets to. */
export const PILE_GAMES: Game[] = [
  {
    name: 'two workers that read ahead drain one pile',
    async open({ market }) {
      const { platform } = market
      const pile = await PiledOrders.open(platform, STORES)
      return async (round) => {
        const orders = await pile.pile(platform, DELIVERIES)
        const readAhead = [orders, 1, 0][round % 3] ?? 0
        const drain = { do: 'drain_pile', batch: BATCH, readAhead } as const
        return {
          tasks: [drain, drain],
          // Each of the three kinds both with and without it.
          ...(Math.floor(round / 3) % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check(outcomes) {
            const drained = outcomes.map(drainedBy)
            const useless = drained.filter(
              ({ events, used }) => readAhead === orders && events > BATCH && used === 0,
            )
            return [
              ...differs('waiting', await pile.waiting(platform), 0),
              ...(await pile.differences(platform)),
              ...differs('sides that took nothing as their thread had read it', useless, []),
              ...differs(
                'one side drained',
                drained.some(({ events }) => events > 0),
                true,
              ),
            ]
          },
        }
      }
    },
  },
]

function drainedBy(outcome: Outcome): PileDrained {
  return 'ok' in outcome ? (outcome.ok as PileDrained) : { events: 0, used: 0 }
}
