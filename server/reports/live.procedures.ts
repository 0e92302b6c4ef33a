import { tracked } from '@trpc/server'
import { liveEvent, liveInput } from '../../shared/schemas/summaries.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { refusingStream, streamOf } from '../platform/api/subscription.ts'
import { followChanges, type LiveMessage } from './live.service.ts'

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
      return refusingStream(ctx, tracking(messages))
    }),
})

async function* tracking(messages: AsyncIterable<LiveMessage>) {
  for await (const { id, event } of messages) yield tracked(id, event)
}
