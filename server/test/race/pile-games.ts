import { PiledOrders } from '../testkit/piled-orders.ts'
import { differs, type Game, PAST_EVENT_LEASE } from './game.ts'

const STORES = 3
/** Several batches for each side. */
const BATCH = 4
const DELIVERIES = 24

/** Much has piled up, and two workers drain it. */
export const PILE_GAMES: Game[] = [
  {
    name: 'two workers drain one pile',
    async open({ market }) {
      const { platform } = market
      const pile = await PiledOrders.open(platform, STORES)
      return async (round) => {
        await pile.pile(platform, DELIVERIES)
        const drain = { do: 'drain_pile', batch: BATCH } as const
        return {
          tasks: [drain, drain],
          ...(round % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check(outcomes) {
            return [
              ...differs('waiting', await pile.waiting(platform), 0),
              ...(await pile.differences(platform)),
              ...differs(
                'one side drained',
                outcomes.some((outcome) => 'ok' in outcome && Number(outcome.ok) > 0),
                true,
              ),
            ]
          },
        }
      }
    },
  },
]
