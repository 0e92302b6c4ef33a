import { applyToOffer } from '../../applications/applications.service.ts'
import { raiseFlag } from '../../flags/flags.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import { connectStore } from '../../stores/stores.service.ts'
import { MAX_CLAIMS_PER_DOMAIN } from '../../stores/webhook-claims.service.ts'
import { addLiveOffer } from '../testkit/listings.ts'
import { orderBody } from '../testkit/orders.ts'
import { addUser } from '../testkit/people.ts'
import { rowOf, rowsOf } from '../testkit/rows.ts'
import {
  type Arena,
  differs,
  eventStates,
  flagsAbout,
  type Game,
  outcomeTexts,
  PAST_EVENT_LEASE,
  refusedAs,
  SALE,
  sell,
  shopWithLink,
  twice,
} from './game.ts'
import { flagAbout } from './tasks.ts'

/** What people and stores ask for, asked for by two at once. */
export const OPERATOR_GAMES: Game[] = [
  {
    name: 'two workers apply one batch of orders',
    async open(arena) {
      const { market } = arena
      const { shop, link } = await shopWithLink(arena)
      return async (round) => {
        const before = await salesOf(arena, shop.merchantId)
        const ids = [1, 2, 3, 4].map((number) => `batch-${link.id}-${round}-${number}`)
        const bodies = await Promise.all([1, 2, 3].map(() => orderOf(arena, link)))
        // The first order once more, as a captured body under another delivery id.
        for (const [index, id] of ids.entries()) {
          await market.deliver(shop, bodies[index] ?? bodies[0] ?? '', { deliveryId: id })
        }
        return {
          tasks: twice({ do: 'drain_store', batch: 500 }),
          ...(round % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check() {
            // A side that takes one event over ends the other side's lease on the rest, which waits for the next batch.
            await market.drainUntilIdle()
            const states = await eventStates(arena, ids)
            return [
              ...differs('events', states, ['done', 'done', 'done', 'ignored']),
              ...differs('sales', (await salesOf(arena, shop.merchantId)) - before, 3),
            ]
          },
        }
      }
    },
  },
  {
    name: 'one delivery comes to two web servers',
    async open(arena) {
      const { market } = arena
      const shop = await market.addShop()
      return async (round) => {
        const before = await salesOf(arena, shop.merchantId)
        const deliveryId = `twice-${shop.storeId}-${round}`
        const same = round % 2 === 0
        const order = () => orderBody({ createdAt: market.clock.now(), price: SALE })
        const body = order()
        const came = { do: 'receive', source: 'store', scope: shop.storeId, deliveryId } as const
        return {
          tasks: [
            { ...came, body },
            { ...came, body: same ? body : order() },
          ],
          async check(outcomes) {
            await market.drainUntilIdle()
            const second = same ? 'known' : 'conflict'
            return [
              ...differs('receipts', outcomeTexts(outcomes), [`ok "${second}"`, 'ok "stored"']),
              ...differs(
                'events',
                await eventStates(arena, [deliveryId]),
                same ? ['done'] : ['done', 'set_aside'],
              ),
              ...differs('sales', (await salesOf(arena, shop.merchantId)) - before, 1),
            ]
          },
        }
      }
    },
  },
  {
    name: 'one application is decided twice',
    async open(arena) {
      const { market } = arena
      const { platform } = market
      const shop = await market.addShop()
      const offer = await addLiveOffer(platform, shop.actor)
      return async (round) => {
        const creator = await addUser(platform, 'creator')
        const wish = { message: null, promotion_url: null }
        const { id } = await applyToOffer(platform, creator.userId, offer.id, wish)
        const asked = { do: 'decide', merchantId: shop.merchantId, applicationId: id } as const
        const other = round % 2 === 0 ? 'reject' : 'approve'
        return {
          tasks: [
            { ...asked, decision: 'approve' },
            { ...asked, decision: other },
          ],
          async check(outcomes) {
            const links = await rowsOf(platform, 'affiliate_links', { application_id: id })
            const { status } = await rowOf(platform, 'applications', { id })
            const refusals = refusedAs(outcomes, 'already_decided')
            return [
              ...differs('links', links.length, status === 'approved' ? 1 : 0),
              ...differs('refusals', refusals, other === 'reject' ? 1 : 0),
              ...(other === 'approve'
                ? differs('outcomes', new Set(outcomeTexts(outcomes)), new Set([outcomeTexts(outcomes)[0]]))
                : []),
            ]
          },
        }
      }
    },
  },
  {
    name: 'one credit is granted twice',
    async open(arena) {
      const { market } = arena
      const shops = [await market.addShop(), await market.addShop()] as const
      const creator = await market.addCreator()
      const links = [
        await market.addLink(shops[0], creator),
        await market.addLink(shops[1], creator),
      ] as const
      return async (round) => {
        const { commission_total, fee_total } = await sell(arena, shops[0], links[0])
        await sell(arena, shops[1], links[1])
        const creditable = commission_total + fee_total - (await grantedTo(arena, shops[0].merchantId))
        const reference = `R-${shops[0].merchantId}-${round}`
        const first = { do: 'credit', merchantId: shops[0].merchantId, amount: 1000, reference } as const
        const most = { ...first, amount: Math.ceil(creditable * 0.6) }
        const seconds = [
          first,
          { ...first, amount: 2000 },
          { ...first, merchantId: shops[1].merchantId },
          { ...most, reference: `${reference}-2` },
        ]
        const kind = round % seconds.length
        return {
          tasks: [kind === 3 ? most : first, seconds[kind] ?? first],
          async check(outcomes) {
            const second = kind === 0 ? 'ok false' : CONFLICT
            return differs('granted', outcomeTexts(outcomes), ['ok true', second].sort())
          },
        }
      }
    },
  },
  {
    name: 'one flag is raised or resolved twice',
    async open(arena) {
      const { platform } = arena.market
      return async (round) => {
        const { userId } = await addUser(platform, 'creator')
        const raise = { do: 'flag', userId } as const
        if (round % 3 === 0) {
          const check = async () => differs('open flags', (await flagsAbout(arena, userId)).length, 1)
          return { tasks: [raise, raise], check }
        }
        await platform.database.transaction((tx) => raiseFlag(platform, tx, flagAbout(userId)))
        const { id } = await rowOf(platform, 'flags', { subject_id: userId })
        const resolve = (note: string) => ({ do: 'resolve', flagId: id, note }) as const
        const both = round % 3 === 1
        return {
          tasks: [resolve('one'), both ? resolve('other') : raise],
          async check(outcomes) {
            const refusals = refusedAs(outcomes, 'already_decided')
            const open = await flagsAbout(arena, userId)
            // Raised again after it was resolved it is a new flag, before that the same.
            return [
              ...differs('refusals', refusals, both ? 1 : 0),
              ...differs('open flags at most one', open.length <= (both ? 0 : 1), true),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two merchants claim one domain',
    async open({ market: { platform } }) {
      const addMerchantId = async () => (await addUser(platform, 'merchant')).userId
      return async (round) => {
        const shop_domain = `claim-${round}.myshopify.com`
        const claimOf = (merchantId: string) => ({ shop_domain, webhook_secret: `${merchantId}-${round}` })
        // Every other time only one place is left.
        const crowded = round % 2 === 1
        for (let claims = 1; crowded && claims < MAX_CLAIMS_PER_DOMAIN; claims += 1) {
          const merchantId = await addMerchantId()
          await connectStore(platform, merchantId, claimOf(merchantId))
        }
        const connect = async () => {
          const merchantId = await addMerchantId()
          return { do: 'connect', merchantId, ...claimOf(merchantId) } as const
        }
        return {
          tasks: [await connect(), await connect()],
          async check(outcomes) {
            const claims = await rowsOf(platform, 'stores', { shop_domain })
            const flags = await rowsOf(platform, 'flags', { kind: 'domain_shared', subject_id: shop_domain })
            const second = crowded ? '{"refused":"quota_exceeded"}' : 'ok true'
            return [
              ...differs('outcomes', outcomeTexts(outcomes), ['ok true', second].sort()),
              ...differs('claims', claims.length, crowded ? MAX_CLAIMS_PER_DOMAIN : 2),
              ...differs('flags', flags.length, crowded ? 1 : 0),
            ]
          },
        }
      }
    },
  },
]

const CONFLICT = '{"refused":"conflict"}'

/** An order of now that came from a click on the link. */
async function orderOf({ market }: Arena, link: LinkRecord): Promise<string> {
  return orderBody({ price: SALE, click: await market.click(link), createdAt: market.clock.now() })
}

async function grantedTo({ market }: Arena, merchantId: string): Promise<number> {
  const credits = await rowsOf(market.platform, 'credits', { merchant_id: merchantId })
  return credits.reduce((sum, { amount }) => sum + amount, 0)
}

async function salesOf({ market }: Arena, merchantId: string): Promise<number> {
  return (await rowsOf(market.platform, 'sales', { merchant_id: merchantId })).length
}
