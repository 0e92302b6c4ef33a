import { formatMoney } from '../../../shared/money.ts'
import { OPERATOR } from '../../flags/audit.service.ts'
import { makeDueCalls } from '../../jobs/processor-calls.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { reinstateUser } from '../../users/users.service.ts'
import { attemptsOf, cycleOf, payoutOf, type Shop } from '../testkit/marketplace.ts'
import { pluck } from '../testkit/pluck.ts'
import { MINUTE } from '../testkit/testbed.ts'
import {
  type Arena,
  closedCycle,
  differs,
  eventStates,
  flagsAbout,
  type Game,
  outcomeTexts,
  PAST_ATTEMPT_LEASE,
  PAST_EVENT_LEASE,
  payoutsOf,
  refusedAs,
  SALE,
  shopWithLink,
} from './game.ts'

/** Calls to the processor and what it says: done by two at once. */
export const PROCESSOR_GAMES: Game[] = [
  {
    name: 'two workers send one attempt',
    async open(arena) {
      const make = await makerOf(arena)
      return async (round) => {
        const reference = await make(round % 2 === 0 ? 'invoice' : 'payout')
        const late = round % 4 > 1
        return {
          tasks: [{ do: 'send' }, { do: 'send' }],
          ...(late && { ahead: PAST_ATTEMPT_LEASE }),
          async check(outcomes) {
            const [attempt, ...others] = await attemptsOf(arena.market.platform, reference)
            return [
              ...differs('attempts', [attempt?.state, others.length], ['created', 0]),
              ...differs('held', heldUnder(arena, reference), [attempt?.id]),
              // A second worker may only come in where the first one's lease is over.
              ...(late ? [] : differs('taken up', outcomeTexts(outcomes), ['ok 0', 'ok 1'])),
              ...(late ? [] : differs('exchanges', arena.double.seen(reference).length, 1)),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a suspension meets the worker that sends the payout',
    async open(arena) {
      const { market, processor } = arena
      const shop = await market.addShop()
      return async () => {
        const { payoutId, creatorId } = await pendingPayout(arena, shop)
        return {
          tasks: [{ do: 'suspend', userId: creatorId }, { do: 'send' }],
          async check() {
            const { state } = await payoutOf(market.platform, payoutId)
            const sent = heldUnder(arena, payoutId).length
            const by = { userId: creatorId, actor: OPERATOR, reason: null }
            await reinstateUser(market.platform, by)
            market.clock.pass(MINUTE)
            await makeDueCalls(market.platform, processor)
            return [
              ...differs('sent, and what it is', sent === 1, state === 'submitted'),
              ...differs('held in the end', heldUnder(arena, payoutId).length, 1),
            ]
          },
        }
      }
    },
  },
  {
    name: 'one confirmation comes twice, under two delivery ids',
    async open(arena) {
      const { market } = arena
      const { shop, link } = await shopWithLink(arena)
      return async (round) => {
        const cycleId = await closedCycle(arena, shop, link)
        await market.drainUntilIdle()
        const cycle = await cycleOf(market.platform, cycleId)
        const deliveries = [`${cycleId}-1`, `${cycleId}-2`] as const
        const body = JSON.stringify({
          type: 'billing.payment_confirmed',
          data: {
            invoice_id: cycle.processor_invoice_id,
            payment_reference: `pay_${cycleId}`,
            amount: formatMoney(cycle.amount_due),
            currency: 'PKR',
          },
        })
        return {
          tasks: [said(deliveries[0], body), said(deliveries[1], body)],
          ...(round % 2 === 1 && { ahead: PAST_EVENT_LEASE }),
          async check() {
            await afterTheLeases(arena)
            const { state } = await cycleOf(market.platform, cycleId)
            return [
              ...differs('cycle', state, 'charged'),
              ...differs('events', await eventStates(arena, deliveries), ['done', 'ignored']),
              ...differs('flags', await flagsAbout(arena, cycleId), []),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a payout is confirmed and failed at once',
    async open(arena) {
      const { market } = arena
      const shop = await market.addShop()
      return async (round) => {
        const { payoutId } = await pendingPayout(arena, shop)
        await market.drainUntilIdle()
        const payout = await payoutOf(market.platform, payoutId)
        const data = {
          payout_id: payout.processor_payout_id,
          reference: payoutId,
          amount: formatMoney(payout.amount),
          currency: 'PKR',
          reason: 'returned by the bank',
        }
        const deliveries = [`${payoutId}-1`, `${payoutId}-2`] as const
        const bodies = ['confirmed', 'failed'].map((word) => JSON.stringify({ type: `payout.${word}`, data }))
        return {
          tasks: [
            said(deliveries[0], bodies[round % 2] ?? ''),
            said(deliveries[1], bodies[1 - (round % 2)] ?? ''),
          ],
          ...(round % 4 > 1 && { ahead: PAST_EVENT_LEASE }),
          async check() {
            await afterTheLeases(arena)
            const { state } = await payoutOf(market.platform, payoutId)
            const held = market.processor.payouts.find(({ reference }) => reference === payoutId)
            if (held) held.status = state
            return [
              ...(['paid', 'failed'].includes(state) ? [] : [`the payout is ${state}`]),
              ...differs('events', await eventStates(arena, deliveries), ['done', 'set_aside']),
              ...differs('flags', await flagsAbout(arena, payoutId), ['payout_contradiction']),
            ]
          },
        }
      }
    },
  },
  {
    name: 'a refused call is retried twice, or while a worker sends it',
    async open(arena) {
      const { market, double, processor } = arena
      const make = await makerOf(arena)
      return async (round) => {
        const kind = round % 2 === 0 ? 'invoice' : 'payout'
        const reference = await make(kind)
        double.plan(reference, { calls: ['refused_422'], lookups: [] })
        await makeDueCalls(market.platform, processor)
        const retry =
          kind === 'invoice'
            ? ({ do: 'reissue', cycleId: reference } as const)
            : ({ do: 'retry_payout', payoutId: reference } as const)
        const alone = round % 4 > 1
        return {
          tasks: [retry, alone ? { do: 'send' } : retry],
          async check(outcomes) {
            await makeDueCalls(market.platform, processor)
            const attempts = await attemptsOf(market.platform, reference)
            return [
              ...differs('conflicts', refusedAs(outcomes, 'conflict'), alone ? 0 : 1),
              ...differs('attempts', pluck(attempts, 'state'), ['refused', 'created']),
              ...differs('held', heldUnder(arena, reference), [attempts[1]?.id]),
              ...differs('flags', await flagsAbout(arena, reference), []),
            ]
          },
        }
      }
    },
  },
]

const said = (deliveryId: string, body: string) =>
  ({ do: 'apply', source: 'processor', scope: 'processor', deliveryId, body }) as const

/** Applies what a side may have left behind because the other one still held it. */
const afterTheLeases = ({ market }: Arena) => market.after(MINUTE)

/** Keys of what the processor holds under a reference. */
function heldUnder({ double }: Arena, reference: string): string[] {
  return double.held.filter((held) => held.reference === reference).map(({ key }) => key)
}

/** A payout that has not been sent yet, to its own creator. */
async function pendingPayout(arena: Arena, shop: Shop) {
  const { market } = arena
  const creator = await market.addCreator()
  await market.earn(shop, await market.addLink(shop, creator), SALE)
  await runPayouts(market.platform, market.processor)
  const [payout] = await payoutsOf(arena, creator.userId)
  if (!payout) throw new Error('no payout')
  return { payoutId: payout.id, creatorId: creator.userId }
}

/** Makes what one call is about; nothing else waits to be sent then. */
async function makerOf(arena: Arena) {
  const { market } = arena
  const { shop, link } = await shopWithLink(arena)
  const payer = await market.addShop()
  return async (kind: 'invoice' | 'payout'): Promise<string> => {
    await market.drainUntilIdle()
    return kind === 'invoice' ? closedCycle(arena, shop, link) : (await pendingPayout(arena, payer)).payoutId
  }
}
