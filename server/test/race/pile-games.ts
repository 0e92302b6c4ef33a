import type { LinkRecord } from '../../links/links.service.ts'
import { rupees, share } from '../oracle/exact.ts'
import { eventsOf, type Marketplace, type Shop } from '../testkit/marketplace.ts'
import { orderBody } from '../testkit/orders.ts'
import { rowsOf } from '../testkit/rows.ts'
import { type Arena, differs, type Game, type Outcome, PAST_EVENT_LEASE, shopWithLink } from './game.ts'
import type { PileDrained } from './tasks.ts'

const STORES = 3
/** Several batches for each side. */
const BATCH = 4
/** What each store sends; what becomes of some depends on what came before. */
const SENT = ['sale', 'sale', 'again', 'malformed', 'sale', 'other body', 'again', 'sale'] as const
/** As much as real orders have besides, so that reading one takes some time. */
const NOTE = 'n'.repeat(6000)

/** Much has piled up, and both workers have a thread that reads it ahead: all of it, the first of it, or as much as it gets to. */
export const PILE_GAMES: Game[] = [
  {
    name: 'two workers that read ahead drain one pile',
    async open(arena) {
      const stalls: Stall[] = []
      while (stalls.length < STORES) stalls.push(await shopWithLink(arena))
      return async (round) => {
        const pile = await pileUp(arena, stalls, round)
        const readAhead = [pile.readable, 1, 0][round % 3] ?? 0
        const drain = { do: 'drain_pile', batch: BATCH, readAhead } as const
        return {
          tasks: [drain, drain],
          // Each of the three kinds both with and without it.
          ...(Math.floor(round / 3) % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check(outcomes) {
            const drained = outcomes.map(drainedBy)
            const useless = drained.filter(
              ({ events, used }) => readAhead === pile.readable && events > BATCH && used === 0,
            )
            const hasDrained = drained.some(({ events }) => events > 0)
            return [
              ...differs('events', await statesOf(arena, pile), pile.states.sort()),
              ...differs('sales', await salesOf(arena, stalls, pile), pile.sales),
              ...differs('sides that took nothing as their thread had read it', useless, []),
              ...differs('one side drained', hasDrained, true),
            ]
          },
        }
      }
    },
  },
]

interface Stall {
  shop: Shop
  link: LinkRecord
}

/** What must become of what was piled up. */
interface Pile {
  /** Deliveries that the thread can read: not those with another body. */
  readable: number
  ids: Set<string>
  states: string[]
  /** Those of each store, in the order in which its orders came. */
  sales: string[]
}

/** Each order has a price of its own, so that nothing can be taken for something else. */
async function pileUp({ market }: Arena, stalls: readonly Stall[], round: number): Promise<Pile> {
  const pile: Pile = { readable: 0, ids: new Set(), states: [], sales: [] }
  const sales: string[][] = stalls.map(() => [])
  const latest: { id: string; orderId: string }[] = []
  for (const [number, kind] of SENT.entries()) {
    for (const [place, stall] of stalls.entries()) {
      const price = 100_000 + 37 * (number * STORES + place)
      const sale = latest[place] ?? { id: '', orderId: '' }
      const id = kind === 'other body' ? sale.id : `${kind} ${round}-${number} ${stall.shop.storeId}`
      const orderId = kind === 'again' ? sale.orderId : String(8e12 + (round * 100 + number) * STORES + place)
      const body = kind === 'malformed' ? `{"id":${orderId}}` : await orderOf(market, stall, orderId, price)
      await market.deliver(stall.shop, body, { deliveryId: id })
      pile.ids.add(id)
      if (kind !== 'other body') pile.readable += 1
      if (kind === 'sale') {
        latest[place] = { id, orderId }
        sales[place]?.push(saleText(orderId, price))
      }
      const state = { sale: 'done', again: 'ignored', malformed: 'set_aside', 'other body': 'set_aside' }[
        kind
      ]
      pile.states.push(`${id} ${state}`)
    }
  }
  return { ...pile, sales: sales.flat() }
}

async function orderOf({ click, clock }: Marketplace, { link }: Stall, id: string, price: number) {
  const order = orderBody({ id, price, createdAt: clock.now(), click: await click(link) })
  return order.replace('{', `{"note":"${NOTE}",`)
}

/** By hand, with the fractions of the model: 12.5 %, and a fee of a tenth of that. */
function saleText(orderId: string, price: number): string {
  const commission = share(price, 125, 1000)
  return `${orderId}: ${rupees(price)}, ${rupees(commission)}, fee ${rupees(share(commission, 1, 10))}`
}

async function statesOf({ market }: Arena, { ids }: Pile): Promise<string[]> {
  const events = (await eventsOf(market.platform)).filter(({ delivery_id }) => ids.has(delivery_id))
  return events.map(({ delivery_id, state }) => `${delivery_id} ${state}`).sort()
}

/** Store by store, in the order in which they stand in their merchants' journals, which is that in which they were applied. */
async function salesOf({ market }: Arena, stalls: readonly Stall[], { ids }: Pile): Promise<string[]> {
  const { platform } = market
  const deliveries = new Map((await eventsOf(platform)).map(({ id, delivery_id }) => [id, delivery_id]))
  const journal = await rowsOf(platform, 'ledger_entries', { kind: 'sale_accepted' }, 'sequence')
  const sales = new Map((await rowsOf(platform, 'sales')).map((sale) => [sale.id, sale]))
  return stalls.flatMap(({ shop }) =>
    journal.flatMap(({ subject_id }) => {
      const sale = sales.get(subject_id)
      if (sale?.store_id !== shop.storeId || !ids.has(deliveries.get(sale.event_id) ?? '')) return []
      const { order_id, net_amount, commission, platform_fee } = sale
      return `${order_id}: ${rupees(net_amount)}, ${rupees(commission)}, fee ${rupees(platform_fee)}`
    }),
  )
}

function drainedBy(outcome: Outcome): PileDrained {
  return 'ok' in outcome ? (outcome.ok as PileDrained) : { events: 0, used: 0 }
}
