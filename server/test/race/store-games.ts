import { connectStore } from '../../stores/stores.service.ts'
import { MAX_CLAIMS_PER_DOMAIN } from '../../stores/webhook-claims.service.ts'
import { addUser } from '../testkit/people.ts'
import { columnsOf } from '../testkit/rows.ts'
import { type Arena, differs, type Game, outcomeTexts } from './game.ts'

/** Merchants who claim one shop domain at the same moment. */
export const STORE_GAMES: Game[] = [
  {
    name: 'two merchants claim one domain',
    async open(arena) {
      const { platform } = arena.market
      return async (round) => {
        const domain = `claim-${round}.myshopify.com`
        const one = await addMerchantId(arena)
        const other = await addMerchantId(arena)
        // Every other time only one place is left.
        const crowded = round % 2 === 1
        for (let claims = 1; crowded && claims < MAX_CLAIMS_PER_DOMAIN; claims += 1) {
          const merchantId = await addMerchantId(arena)
          await connectStore(platform, merchantId, storeOf(merchantId, domain))
        }
        const connect = (merchantId: string) =>
          ({ do: 'connect', merchantId, ...storeOf(merchantId, domain) }) as const
        return {
          tasks: [connect(one), connect(other)],
          async check(outcomes) {
            const claims = await claimsOn(arena, domain)
            return [
              ...differs(
                'outcomes',
                outcomeTexts(outcomes),
                crowded ? ['ok true', FULL].sort() : ['ok true', 'ok true'],
              ),
              ...differs('claims', claims, crowded ? MAX_CLAIMS_PER_DOMAIN : 2),
              ...differs('flags', await flagsOn(arena, domain), crowded ? 1 : 0),
            ]
          },
        }
      }
    },
  },
]

const FULL = '{"refused":"quota_exceeded"}'

/** A merchant of their own for each contest: an account may have a few stores only. */
async function addMerchantId({ market }: Arena): Promise<string> {
  return (await addUser(market.platform, 'merchant')).userId
}

function storeOf(merchantId: string, domain: string) {
  return { shop_domain: domain, webhook_secret: `${merchantId}-${domain}` }
}

async function claimsOn({ market }: Arena, domain: string): Promise<number> {
  const rows = await columnsOf(market.platform, 'stores', ['id'], { shop_domain: domain })
  return rows.length
}

async function flagsOn({ market }: Arena, domain: string): Promise<number> {
  const rows = await columnsOf(market.platform, 'flags', ['id'], {
    kind: 'domain_shared',
    subject_id: domain,
  })
  return rows.length
}
