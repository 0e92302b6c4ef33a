import { isTrackedEnvelope, type TrackedEnvelope, tracked } from '@trpc/server'
import { z } from 'zod'
import { suspensionPreview } from '../../shared/schemas/admin.ts'
import { idInput } from '../../shared/schemas/common.ts'
import {
  affiliateLink,
  changeLinkInput,
  endLinkInput,
  linkPage,
  listLinksInput,
} from '../../shared/schemas/links.ts'
import {
  liveEvent,
  liveInput,
  series,
  seriesInput,
  summary,
  summaryInput,
} from '../../shared/schemas/summaries.ts'
import { COUPON_QUOTA, LINK_ENDED, setCoupon } from '../links/coupons.service.ts'
import { endLink } from '../links/end-link.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, type RequestContext, refused, router } from '../platform/api/procedure.ts'
import { periodOf } from '../platform/clock.ts'
import { ownScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { findUser } from '../users/users.service.ts'
import { type ListedLink, listLinks, wireLink, withEarnings } from './listed-links.service.ts'
import { followChanges, type LiveMessage } from './live.service.ts'
import { previewSuspension, wireSuspension } from './operator-status.service.ts'
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

export const suspensionPreviewProcedures = {
  previewSuspension: procedure(['admin'], {
    rest: { method: 'GET', path: '/admin/users/:id/suspension' },
    summary: 'What suspending a user would do',
    description: 'Changes nothing. `POST /admin/users/:id/suspend` does it.',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(suspensionPreview)
    .query(async ({ ctx: { platform }, input }) =>
      wireSuspension(await previewSuspension(platform, await findUser(platform, input.id))),
    ),
}

/** What answers links with their visits and earnings. */
export const listedLinkProcedures = {
  list: procedure(['creator', 'merchant'], {
    rest: { method: 'GET', path: '/affiliate-links' },
    summary: 'List own links with their clicks and earnings',
    description: 'A creator sees own links, a merchant those to own offers.',
  })
    .input(listLinksInput)
    .output(linkPage)
    .query(async ({ ctx, input }) => {
      const { offer_id: offerId, ...page } = input
      const links = await listLinks(ctx.platform, { ...ownScope(ctx.actor), offerId }, page)
      return mapPage(links, (link) => wireLink(ctx.platform, link))
    }),

  setCoupon: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/affiliate-links/:slug' },
    summary: "Change a link's coupon code, or end the link",
    description:
      'Orders of the store with this discount code are credited to the link from now on, before any click. Create the code in the store as well. `null` takes the code away; orders created before keep it. `status: ended` ends the link for good: later visits reach the product page without a reference, and its coupon code is no longer in force. Clicks before still pay within their window. The creator is notified. Repeating it changes nothing. In tRPC `links.end` does this.',
    errors: ['not_found', 'conflict', 'already_decided', 'coupon_taken', 'quota_exceeded'],
    details: {
      conflict: LINK_ENDED,
      quota_exceeded: COUPON_QUOTA.detail,
      already_decided: 'This link has ended already, for another reason.',
    },
  })
    .input(changeLinkInput)
    .output(affiliateLink)
    .mutation(async ({ ctx: { platform, actor }, input }) => {
      const { slug, coupon_code: code = null, status, reason = null } = input
      const change = { slug, actor: actor.userId }
      return shownLink(
        platform,
        await (status ? endLink(platform, { ...change, reason }) : setCoupon(platform, { ...change, code })),
      )
    }),

  end: procedure(['merchant'], {
    summary: 'End a link for good',
    description: 'As `PATCH /affiliate-links/:slug` with `status: ended`.',
    errors: ['not_found', 'already_decided'],
  })
    .input(endLinkInput)
    .output(affiliateLink)
    .mutation(async ({ ctx: { platform, actor }, input: { slug, reason = null } }) =>
      shownLink(platform, await endLink(platform, { slug, reason, actor: actor.userId })),
    ),
}

async function shownLink(platform: Platform, link: LinkRecord) {
  const [shown] = (await withEarnings(platform, [link])) as [ListedLink]
  return wireLink(platform, shown)
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
