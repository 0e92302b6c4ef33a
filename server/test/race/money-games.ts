import { connectStore } from '../../stores/stores.service.ts'
import { attemptsOf, cycleOf, cyclesOf } from '../testkit/marketplace.ts'
import { pluck, pluckAll } from '../testkit/pluck.ts'
import { rowsOf } from '../testkit/rows.ts'
import {
  type Arena,
  BILLED,
  COMMISSION,
  differs,
  type Game,
  outcomeTexts,
  PAST_EVENT_LEASE,
  payoutsOf,
  SALE,
  sell,
  shopWithLink,
  twice,
} from './game.ts'

/** Cycles and payouts: what the schedule does, done by two at once. */
export const MONEY_GAMES: Game[] = [
  {
    name: 'two workers decide an unpaid order again',
    async open(arena) {
      const { market } = arena
      const { platform } = market
      const { shop, link } = await shopWithLink(arena)
      return async (round) => {
        const unpaid = await market.order(shop, link, SALE, { financialStatus: 'pending' })
        await market.drainUntilIdle()
        market.clock.pass(1000)
        const paid = unpaid.replace('"pending"', '"paid"')
        await market.deliver(shop, paid)
        await market.deliver(shop, paid)
        const drain = { do: 'drain_store', batch: 1 } as const
        return {
          tasks: twice(drain),
          ...(round % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check() {
            await market.drainUntilIdle()
            const [sale] = (await rowsOf(platform, 'sales')).slice(-1)
            const sale_id = sale?.id ?? ''
            const former = await rowsOf(platform, 'sale_decisions', { sale_id }, 'sale_id')
            const entries = await rowsOf(platform, 'ledger_entries', { subject_id: sale_id })
            const [cycle] = (await cyclesOf(platform, shop.merchantId)).slice(-1)
            const accepted = { merchant_id: shop.merchantId, acceptance_status: 'accepted' } as const
            const sold = await rowsOf(platform, 'sales', accepted)
            return [
              ...differs(
                'sale',
                [sale?.acceptance_status, sale?.commission, pluck(former, 'decided_at'), entries.length],
                ['accepted', COMMISSION, [sale?.created_at], 1],
              ),
              ...differs('sales of the cycle', cycle?.sales_count, sold.length),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two schedulers close one cycle',
    async open(arena) {
      const { market } = arena
      const { shop, link } = await shopWithLink(arena)
      return async () => {
        const cycle = await sell(arena, shop, link)
        const task = { do: 'close', merchantId: shop.merchantId, asOf: cycle.period_end } as const
        return {
          tasks: twice(task),
          async check(outcomes) {
            const { state, amount_due } = await cycleOf(market.platform, cycle.id)
            const attempts = await attemptsOf(market.platform, cycle.id)
            return [
              ...differs('closed', outcomeTexts(outcomes), ['ok 0', 'ok 1']),
              ...differs('cycle', [state, amount_due, attempts.length], ['closed', BILLED, 1]),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a scheduler closes the cycle that a late sale closes',
    async open(arena) {
      const { market } = arena
      const { shop, link } = await shopWithLink(arena)
      return async () => {
        const cycle = await sell(arena, shop, link)
        market.clock.pass(cycle.period_end - market.clock.now())
        await market.order(shop, link, SALE)
        return {
          tasks: [
            { do: 'close', merchantId: shop.merchantId, asOf: cycle.period_end },
            { do: 'drain_store', batch: 500 },
          ],
          async check() {
            const after = (await cyclesOf(market.platform, shop.merchantId)).slice(-2)
            return [
              ...differs('cycles', pluckAll(after, 'state', 'sales_count'), [
                ['closed', cycle.sales_count],
                ['open', 1],
              ]),
              ...differs('attempts', (await attemptsOf(market.platform, cycle.id)).length, 1),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two schedulers start, with a cycle to close and a creator to pay',
    async open(arena) {
      const { market } = arena
      const shop = await market.addShop()
      const creator = await market.addCreator()
      const link = await market.addLink(shop, creator)
      return async () => {
        await market.earn(shop, link, SALE)
        const cycle = await sell(arena, shop, link)
        const before = (await payoutsOf(arena, creator.userId)).length
        market.clock.pass(Math.max(0, cycle.period_end - market.clock.now()))
        return {
          tasks: twice({ do: 'schedule' }),
          async check() {
            const made = (await payoutsOf(arena, creator.userId)).slice(before)
            const { state } = await cycleOf(market.platform, cycle.id)
            const attempts = await attemptsOf(market.platform, cycle.id)
            return [
              ...differs('cycle', [state, attempts.length], ['closed', 1]),
              ...differs('payouts', pluck(made, 'amount'), [COMMISSION]),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two payout runs pay one creator',
    async open(arena) {
      const { market } = arena
      const shop = await market.addShop()
      const creator = await market.addCreator()
      const link = await market.addLink(shop, creator)
      return async () => {
        await market.earn(shop, link, SALE)
        const before = (await payoutsOf(arena, creator.userId)).length
        return {
          tasks: twice({ do: 'run_payouts' }),
          async check(outcomes) {
            const made = (await payoutsOf(arena, creator.userId)).slice(before)
            const attempts = await attemptsOf(market.platform, made[0]?.id ?? '')
            const paid = outcomes.filter((outcome) =>
              JSON.stringify(outcome).includes(`paid_out ${creator.userId}`),
            )
            return [
              ...differs('runs that paid', paid.length, 1),
              ...differs('payouts', pluckAll(made, 'amount', 'state'), [[COMMISSION, 'pending']]),
              ...differs('attempts', attempts.length, 1),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a suspension meets a payout run',
    async open(arena) {
      const { market } = arena
      const shop = await market.addShop()
      return async (round) => {
        const creator = await market.addCreator()
        await market.earn(shop, await market.addLink(shop, creator), SALE)
        // The run looks at all creators and asks the processor before its first transaction.
        const afterMs = (round % 8) * 3
        return {
          tasks: [{ do: 'suspend', userId: creator.userId, afterMs }, { do: 'run_payouts' }],
          async check() {
            await market.drainUntilIdle()
            const made = await payoutsOf(arena, creator.userId)
            const sent = market.processor.payouts.filter(({ reference }) => reference === made[0]?.id)
            // Made before the suspension or not at all; either way it does not go out.
            return [
              ...(made.length > 1 ? [`${made.length} payouts`] : []),
              ...differs('states', new Set(made.map(({ state }) => state)).has('submitted'), false),
              ...differs('sent', sent.length, 0),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a sale of each of two stores opens the first cycle of their merchant',
    async open(arena) {
      const { market } = arena
      return async () => {
        const { shop, storeIds } = await twoStores(arena)
        const link = await market.addLink(shop, await market.addCreator())
        for (const storeId of storeIds) await market.order({ ...shop, storeId }, link, SALE)
        return {
          tasks: twice({ do: 'drain_store', batch: 1 }),
          async check(outcomes) {
            const cycles = await cyclesOf(market.platform, shop.merchantId)
            return [
              ...differs('applied', outcomeTexts(outcomes), ['ok 1', 'ok 1']),
              ...differs('cycles', pluckAll(cycles, 'state', 'sales_count'), [['open', 2]]),
            ]
          },
        }
      }
    },
  },
]

async function twoStores({ market }: Arena) {
  const shop = await market.addShop()
  const second = await connectStore(market.platform, shop.merchantId, {
    shop_domain: `second-${shop.merchantId}.myshopify.com`,
    webhook_secret: `second-secret-${shop.merchantId}`,
  })
  return { shop, storeIds: [shop.storeId, second.id] }
}
