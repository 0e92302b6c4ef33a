import { manualMarket } from '../testkit/manual-market.ts'
import { cycleOf } from '../testkit/marketplace.ts'
import { addUser } from '../testkit/people.ts'
import {
  type Arena,
  BILLED,
  differs,
  flagsAbout,
  type Game,
  outcomeTexts,
  SALE,
  shopWithLink,
} from './game.ts'

/** Bank transfers that two operators confirm and export at once. */
export const MANUAL_GAMES: Game[] = [
  {
    name: 'two operators confirm one payment',
    async open(arena) {
      const { market, make } = await handsOf(arena)
      return async (round) => {
        const cycleId = await make.invoice()
        const confirm = (reference: string) =>
          ({ do: 'confirm', actor: make.admin, cycleId, amount: BILLED, reference }) as const
        const isSame = round % 2 === 0
        const references = [
          `FT ${cycleId}`.toUpperCase(),
          `FT ${cycleId} ${isSame ? '' : '2'}`.trim().toUpperCase(),
        ]
        return {
          tasks: [confirm(references[0] ?? ''), confirm(references[1] ?? '')],
          async check(outcomes) {
            await make.drain()
            const { state, processor_payment_reference } = await cycleOf(market.platform, cycleId)
            const events = await market.platform.database.reader
              .selectFrom('inbound_events')
              .select('state')
              .where('delivery_id', '=', `manual-${(await make.transferOf(cycleId)).id}`)
              .execute()
            return [
              ...differs('words', outcomeTexts(outcomes), [
                'ok "record"',
                `ok "${isSame ? 'repeat' : 'settled'}"`,
              ]),
              ...differs(
                'cycle',
                [state, references.includes(processor_payment_reference ?? '')],
                ['charged', true],
              ),
              ...differs('events', events, [{ state: 'done' }]),
              ...differs('flags', await flagsAbout(arena, cycleId), []),
            ]
          },
        }
      }
    },
  },
  {
    name: 'two operators use one reference for two payments',
    async open(arena) {
      const { make } = await handsOf(arena)
      return async () => {
        const [one, other] = [await make.invoice(), await make.invoice()]
        const reference = `FT ${one}`.toUpperCase()
        const confirm = (cycleId: string) =>
          ({ do: 'confirm', actor: make.admin, cycleId, amount: BILLED, reference }) as const
        return {
          tasks: [confirm(one), confirm(other)],
          async check(outcomes) {
            await make.drain()
            return differs('words', outcomeTexts(outcomes), ['ok "record"', 'ok "used_reference"'])
          },
        }
      }
    },
  },
  {
    name: 'two operators write the payouts into files',
    async open(arena) {
      const { make } = await handsOf(arena)
      return async () => {
        const payoutId = await make.payout()
        const write = { do: 'export_payouts', actor: make.admin } as const
        return {
          tasks: [write, write],
          async check(outcomes) {
            return [
              ...differs('rows', outcomeTexts(outcomes), ['ok 0', 'ok 1']),
              ...differs('file', (await make.transferOf(payoutId)).file !== null, true),
            ]
          },
        }
      }
    },
  },
]

/** A shop and a creator of a marketplace whose processor is worked by hand. */
async function handsOf(arena: Arena) {
  const { market } = arena
  const manual = manualMarket(market)
  const { shop, link } = await shopWithLink(arena)
  const { userId: admin } = await addUser(market.platform, 'admin')
  const make = {
    ...manual,
    admin,
    invoice: () => manual.invoice(shop, link, SALE),
    async payout(): Promise<string> {
      await manual.settle(await make.invoice(), admin)
      const [payoutId = ''] = await manual.payOut()
      return payoutId
    },
  }
  return { market, make }
}
