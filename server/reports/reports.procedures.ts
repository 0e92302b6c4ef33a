import { isTrackedEnvelope, type TrackedEnvelope, tracked } from '@trpc/server'
import { z } from 'zod'
import { listInput } from '../../shared/schemas/common.ts'
import { affiliateLink, linkPage, setCouponInput } from '../../shared/schemas/links.ts'
import {
  liveEvent,
  liveInput,
  series,
  seriesInput,
  summary,
  summaryInput,
} from '../../shared/schemas/summaries.ts'
import { COUPON_QUOTA, setCoupon } from '../links/coupons.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, type RequestContext, refused, router } from '../platform/api/procedure.ts'
import { periodOf } from '../platform/clock.ts'
import { ownScope } from '../platform/database/keyset-scan.ts'
import { type ListedLink, listLinks, wireLink, withEarnings } from './listed-links.service.ts'
import { followChanges, type LiveMessage } from './live.service.ts'
import { seriesOf } from './series.service.ts'
import { creatorSummary, merchantSummary } from './summaries.service.ts'

export const summariesRouter = router({
  get: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/summary' },
    summary: 'How the caller stands',
    description:
      'For a creator clicks, sales, the balance of the journal and the next payout; for a merchant sales, the open billing cycle with its best offers and creators, what is owed and what credit there is. `from` and `to` choose which sales are counted; everything else is as of now.',
  })
    .input(summaryInput)
    .output(summary)
    .query(async ({ ctx: { platform, actor }, input }) => {
      const period = periodOf(input)
      return actor.role === 'merchant'
        ? merchantSummary(platform, actor.userId, period, input.top)
        : creatorSummary(platform, actor.userId, period)
    }),

  series: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/summary/series' },
    summary: 'Visits and sales by day, link, offer or sub id',
    description:
      "Days are days of the service's billing time zone. Rejected sales without a link count by day only.",
  })
    .input(seriesInput)
    .output(series)
    .query(({ ctx: { platform, actor }, input }) =>
      seriesOf(platform, ownScope(actor), input.by, periodOf(input)),
    ),
})

/** What answers links with their visits and earnings. */
export const listedLinkProcedures = {
  list: procedure(['creator'], {
    rest: { method: 'GET', path: '/affiliate-links' },
    summary: 'List own links with their earnings',
  })
    .input(listInput)
    .output(linkPage)
    .query(async ({ ctx, input }) => {
      const page = await listLinks(ctx.platform, { creatorId: ctx.actor.userId }, input)
      return mapPage(page, (link) => wireLink(ctx.platform, link))
    }),

  setCoupon: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/affiliate-links/:slug' },
    summary: 'Give a link a coupon code, or take it away',
    description:
      'Orders of the store with this discount code are credited to the link from now on, before any click. Create the code in the store as well. `null` takes the code away; orders created before keep it.',
    errors: ['not_found', 'coupon_taken', 'quota_exceeded'],
    details: { quota_exceeded: COUPON_QUOTA.detail },
  })
    .input(setCouponInput)
    .output(affiliateLink)
    .mutation(async ({ ctx, input }) => {
      const { slug, coupon_code: code } = input
      const link = await setCoupon(ctx.platform, { slug, code, actor: ctx.actor.userId })
      const [shown] = (await withEarnings(ctx.platform, [link])) as [ListedLink]
      return wireLink(ctx.platform, shown)
    }),
}

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
