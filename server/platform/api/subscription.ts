import { isTrackedEnvelope, type TrackedEnvelope, tracked } from '@trpc/server'
import { z } from 'zod'
import { refusalOf } from '../api/problem.ts'
import { type RequestContext, trpcErrorOf } from '../api/procedure.ts'

/** The output schema of a subscription: events with ids, each checked like any other output. */
export function streamOf<Event extends z.ZodType>(event: Event) {
  return z
    .custom<AsyncIterable<TrackedEnvelope<z.input<Event>>>>(
      (value) => typeof value === 'object' && value !== null && Symbol.asyncIterator in value,
    )
    .transform(async function* (events): AsyncGenerator<TrackedEnvelope<z.output<Event>>, void> {
      for await (const envelope of events) {
        if (!isTrackedEnvelope(envelope)) throw new Error('an event without an id')
        yield tracked(envelope[0], await event.parseAsync(envelope[1]))
      }
    })
}

/** What goes wrong within a stream leaves as what a procedure's own refusal leaves as: procedures end where a stream begins. */
export async function* refusingStream<Event>(
  { platform, requestId }: Pick<RequestContext, 'platform' | 'requestId'>,
  events: AsyncIterable<Event>,
): AsyncGenerator<Event, void> {
  try {
    yield* events
  } catch (error) {
    const refusal = refusalOf(error, platform.database)
    if (refusal.code === 'internal') platform.log.error({ requestId, err: error }, 'bug')
    throw trpcErrorOf(refusal)
  }
}
