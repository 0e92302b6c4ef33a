import { connectStore, MAX_CLAIMS_PER_DOMAIN } from '../../stores/stores.service.ts'
import { orderBody } from '../testbed/orders.ts'
import { addUser } from '../testbed/people.ts'
import { type Arena, differs, type Game, SALE, told } from './game.ts'

/** Merchants who claim one shop domain at the same moment. */
export const STORE_GAMES: Game[] = [
  {
    name: 'two merchants claim one domain',
    async open(arena) {
      const { platform } = arena.market
      const merchants: string[] = []
      for (let n = 0; n <= MAX_CLAIMS_PER_DOMAIN; n += 1) {
        merchants.push((await addUser(platform, 'merchant')).userId)
      }
      const [one = '', other = '', ...former] = merchants
      return async (round) => {
        const domain = `claim-${round}.myshopify.com`
        // Every other time only one place is left.
        const crowded = round % 2 === 1
        for (const merchantId of crowded ? former : [])
          await connectStore(platform, merchantId, storeOf(merchantId, domain))
        const connect = (merchantId: string) =>
          ({ do: 'connect', merchantId, ...storeOf(merchantId, domain) }) as const
        return {
          tasks: [connect(one), connect(other)],
          async check(outcomes) {
            const claims = await claimsOn(arena, domain)
            return [
              ...differs(
                'outcomes',
                told(outcomes),
                crowded ? ['ok true', CONFLICT].sort() : ['ok true', 'ok true'],
              ),
              ...differs('claims', claims, crowded ? MAX_CLAIMS_PER_DOMAIN : 2),
              ...differs('flags', await flagsOn(arena, domain), crowded ? 1 : 0),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two claims on one domain receive their first events',
    async open(arena) {
      const { market } = arena
      const { platform } = market
      const merchants = [await addUser(platform, 'merchant'), await addUser(platform, 'merchant')]
      return async (round) => {
        const domain = `shared-${round}.myshopify.com`
        const received = await Promise.all(
          merchants.map(async (actor) => {
            const store = await connectStore(platform, actor.userId, storeOf(actor.userId, domain))
            return {
              do: 'apply',
              source: 'store',
              scope: store.id,
              deliveryId: `first-${store.id}`,
              body: orderBody({ price: SALE, createdAt: market.clock.now() }),
            } as const
          }),
        )
        const [one, other] = received
        if (!one || !other) throw new Error('two merchants claim it')
        return {
          tasks: [one, other],
          async check() {
            await market.workOff()
            return differs('flags', await flagsOn(arena, domain), 1)
          },
        }
      }
    },
  },
]

const CONFLICT = '{"refused":"conflict"}'

function storeOf(merchantId: string, domain: string) {
  return { shop_domain: domain, webhook_secret: `${merchantId}-${domain}` }
}

async function claimsOn({ market }: Arena, domain: string): Promise<number> {
  const rows = await market.platform.database.reader
    .selectFrom('stores')
    .select('id')
    .where('shop_domain', '=', domain)
    .execute()
  return rows.length
}

async function flagsOn({ market }: Arena, domain: string): Promise<number> {
  const rows = await market.platform.database.reader
    .selectFrom('flags')
    .select('id')
    .where('kind', '=', 'domain_shared')
    .where('subject_id', '=', domain)
    .execute()
  return rows.length
}
