import { isTrackedEnvelope, type TrackedEnvelope, tracked } from '@trpc/server'
import { z } from 'zod'
import { liveEvent, liveInput } from '../../shared/schemas/summaries.ts'
import { procedure, type RequestContext, refused, router } from '../platform/api/procedure.ts'
import { followChanges, type LiveMessage } from './live.service.ts'

/** Events with ids, each checked like any other output. */
const stream = z
  .custom<AsyncIterable<TrackedEnvelope<z.input<typeof liveEvent>>>>(
    (value) => typeof value === 'object' && value !== null && Symbol.asyncIterator in value,
  )
  .transform(async function* (events): AsyncGenerator<TrackedEnvelope<z.output<typeof liveEvent>>, void> {
    for await (const envelope of events) {
      if (!isTrackedEnvelope(envelope)) throw new Error('an event without an id')
      yield tracked(envelope[0], await liveEvent.parseAsync(envelope[1]))
    }
  })

export const liveRouter = router({
  changes: procedure(['merchant', 'creator'], {
    summary: 'Follow own sales, payouts and billing cycles',
    description:
      'Server-sent events, through tRPC only. A new stream begins with a `start` event; each event id takes the stream up again after it, and nothing is sent twice.',
    errors: ['rate_limited', 'unavailable', 'unauthenticated'],
  })
    .input(liveInput)
    .output(stream)
    .subscription(({ ctx, input, signal }) => {
      const messages = followChanges(ctx.platform, ctx.actor, {
        lastEventId: input.lastEventId ?? null,
        signal: ctx.gone ?? signal ?? new AbortController().signal,
      })
      return tracking(ctx, messages)
    }),
})

/** A stream outlives its procedure, so it converts its errors itself. */
async function* tracking(ctx: RequestContext, messages: AsyncIterable<LiveMessage>) {
  try {
    for await (const { id, event } of messages) yield tracked(id, event)
  } catch (error) {
    throw await refused(ctx, 'live.changes', error)
  }
}
