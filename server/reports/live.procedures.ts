import { tracked } from '@trpc/server'
import { type LiveEvent, liveEvent, liveInput } from '../../shared/schemas/summaries.ts'
import { wireCycle } from '../billing/billing-wire.ts'
import { wirePart, wirePayout } from '../payouts/payout-wire.ts'
import { type Actor, procedure, router } from '../platform/api/procedure.ts'
import { refusingStream, streamOf } from '../platform/api/subscription.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { type NamedSale, withNames } from '../sales/sale-explanation.service.ts'
import { wireNamedSale } from '../sales/sale-wire.ts'
import { followChanges, type LiveMessage, type LiveNewsItem } from './live.service.ts'

export const liveRouter = router({
  changes: procedure(['merchant', 'creator'], {
    summary: 'Follow own sales, payouts and billing cycles',
    description:
      'Server-sent events, through tRPC only. A new stream begins with a `start` event; each event id takes the stream up again after it, and nothing is sent twice.',
    errors: ['rate_limited', 'unavailable', 'unauthenticated'],
  })
    .input(liveInput)
    .output(streamOf(liveEvent))
    .subscription(({ ctx, input, signal }) => {
      const messages = followChanges(ctx.platform, ctx.actor, {
        lastEventId: input.lastEventId ?? null,
        signal: ctx.gone ?? signal ?? new AbortController().signal,
      })
      return refusingStream(ctx, wireMessages(ctx.platform, messages, ctx.actor))
    }),
})

async function* wireMessages(platform: Platform, messages: AsyncIterable<LiveMessage>, actor: Actor) {
  for await (const { id, item } of messages) yield tracked(id, await wireItem(platform, item, actor))
}

async function wireItem(platform: Platform, item: LiveNewsItem, { role }: Actor): Promise<LiveEvent> {
  const at = isoTime(item.at)
  switch (item.kind) {
    case 'start':
      return { kind: 'start', at }
    case 'sale': {
      const [sale] = (await withNames(platform, [item.sale])) as [NamedSale]
      return { kind: 'sale', at, sale: wireNamedSale(sale, role) }
    }
    case 'payout': {
      const payout = 'part' in item.payout ? wirePart(item.payout) : wirePayout(item.payout)
      return { kind: 'payout', at, change: item.change, payout }
    }
    case 'billing_cycle':
      return { kind: 'billing_cycle', at, change: item.change, billing_cycle: wireCycle(item.cycle) }
  }
}
