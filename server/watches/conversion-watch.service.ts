import { DAY_MS } from '../../shared/durations.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { linkRecords } from '../links/links.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { lockWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, timeOfId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { dayOf } from '../stores/store-activity.service.ts'
import { conversionDropped, type LinkTally, pausedInTraffic, unusualConversion } from './patterns.rule.ts'
import { flagUnusual, withNewRows } from './patterns.service.ts'
import { SALES_LAG_MS, SALES_PER_RUN } from './sale-watch.service.ts'
import {
  decidedAgainBetween,
  deleteDaysBefore,
  firstDayWithVisits,
  linkCourses,
  linksVisited,
  offersWithUntrackedVisits,
  salesBetween,
  tallyLinks,
} from './watches.store.ts'

const VISITS = 'watches.visits'
/** A day is checked this long after its end, when its visits are counted unless a clock is behind. */
const CLICKS_LAG_MS = 10_000

/**
 * Checks the links that had visits on a day that is over, and those that had sales meanwhile. Visits are totals by link and day, which the
 * roll-up of clicks writes: run it first. Returns whether there is more to do.
 */
export async function watchConversions(platform: Platform): Promise<boolean> {
  const now = platform.clock.now()
  if (await platform.database.transaction((tx) => checkPastDay(platform, tx, now))) return true
  return platform.database.transaction((tx) => checkSellingLinks(platform, tx, now))
}

async function checkPastDay(platform: Platform, tx: Tx, now: number): Promise<boolean> {
  const { FLAG_CONVERSION_DAYS: days } = platform.config
  const from = timeOfId(await lockWatermark(tx, VISITS, firstIdAt((dayOf(now) - days) * DAY_MS)))
  const bound = now - CLICKS_LAG_MS
  if (bound <= from) return false
  const day = dayOf(from)
  const dayEnd = (day + 1) * DAY_MS
  const to = Math.min(bound, dayEnd)
  await setWatermark(tx, VISITS, firstIdAt(to))
  if (to === dayEnd) await checkDay(platform, tx, day)
  return to < bound
}

/** For the links visited on a day that is over: flags those without sales, those whose sales dropped, and paused offers. */
async function checkDay(platform: Platform, tx: Tx, day: number): Promise<void> {
  const { FLAG_CONVERSION_DAYS: days, FLAG_CONVERSION_NONE: visits } = platform.config
  const firstDay = day - days + 1
  if (visits > 0) {
    const linkIds = await linksVisited(tx, day, firstDay, visits)
    await flagConversions(platform, tx, { firstDay, lastDay: day }, linkIds)
  }
  await flagDropped(platform, tx, firstDay, day)
  await flagPaused(platform, tx, day)
  const { FLAG_COUPON_LEAK_DAYS: couponDays } = platform.config
  await deleteDaysBefore(tx, Math.min(firstDay - PAST_SPANS * days, day - couponDays))
}

/** A link's conversion is compared with that of this many earlier spans of FLAG_CONVERSION_DAYS. */
const PAST_SPANS = 2

async function flagDropped(platform: Platform, tx: Tx, firstDay: number, day: number): Promise<void> {
  const { FLAG_CONVERSION_DROP_SALES: least, FLAG_CONVERSION_DAYS: days } = platform.config
  const known = await firstDayWithVisits(tx)
  if (least === 0 || known === null) return
  const pastDay = Math.max(known, firstDay - PAST_SPANS * days)
  const linkIds = await linksVisited(tx, day, firstDay, platform.config.FLAG_CONVERSION_VISITS)
  await flagUnusual(platform, tx, linkIds, {
    kind: 'conversion_dropped',
    subjectType: 'affiliate_link',
    windowStart: firstDay * DAY_MS,
    tally: (ids, since) =>
      linkCourses(tx, ids, { pastDay, sinceDay: Math.ceil(since / DAY_MS), lastDay: day }),
    isUnusual: (course) => conversionDropped(course, least),
    async flag(linkId, { visits, sales, pastVisits, pastSales }) {
      const expected = Math.floor((pastSales * visits) / pastVisits)
      return {
        summary: `A link that sold before had ${sales} accepted sales where its visits suggest ${expected}.`,
        evidence: {
          visits,
          sales,
          visits_before: pastVisits,
          sales_before: pastSales,
          ...(await aboutLink(tx, linkId)),
        },
      }
    },
  })
}

async function flagPaused(platform: Platform, tx: Tx, day: number): Promise<void> {
  const { FLAG_PAUSED_VISITS: least } = platform.config
  if (least === 0) return
  const offers = await offersWithUntrackedVisits(tx, day, least)
  for (const { offer_id, merchant_id, status, tracked, untracked } of offers) {
    if (!pausedInTraffic({ tracked, untracked }, least)) continue
    await raiseFlag(platform, tx, {
      kind: 'offer_paused_in_traffic',
      subjectType: 'offer',
      subjectId: offer_id,
      summary: `An offer was not live during ${untracked} visits of its links in a day, after ${tracked} tracked ones.`,
      evidence: {
        merchant_id,
        offer_status: status,
        untracked_visits: untracked,
        tracked_visits: tracked,
        day: new Date(day * DAY_MS).toISOString().slice(0, 10),
      },
    })
  }
}

async function aboutLink(tx: Tx, linkId: string) {
  const link = (await linkRecords(tx, [linkId])).get(linkId)
  return {
    affiliate_link_slug: link?.slug,
    creator_id: link?.creator_id,
    merchant_id: link?.merchant_id,
    offer_id: link?.offer_id,
  }
}

/** Stops where the checked visits end, because a sale without its visits would raise the conversion. */
async function checkSellingLinks(platform: Platform, tx: Tx, now: number): Promise<boolean> {
  const firstDay = dayOf(now) - platform.config.FLAG_CONVERSION_DAYS + 1
  const first = firstIdAt(firstDay * DAY_MS)
  const visitsAddedTo = await lockWatermark(tx, VISITS, first)
  const to = [visitsAddedTo, firstIdAt(now - SALES_LAG_MS)].sort()[0] as string
  const fresh = { watermark: 'watches.conversions', first, to, limit: SALES_PER_RUN }
  return withNewRows(tx, { ...fresh, read: (range) => salesBetween(tx, range) }, async (recorded, range) => {
    const sales = [...recorded, ...(await decidedAgainBetween(tx, range))]
    const sold = sales.filter((sale) => sale.acceptance_status === 'accepted').map((sale) => sale.link_id)
    await flagConversions(platform, tx, { firstDay, lastDay: dayOf(now) }, sold)
  })
}

function flagConversions(
  platform: Platform,
  tx: Tx,
  { firstDay, lastDay }: { firstDay: number; lastDay: number },
  linkIds: readonly (string | null)[],
): Promise<void> {
  const { config } = platform
  const judge = (tally: LinkTally) =>
    unusualConversion(tally, {
      rate: config.FLAG_CONVERSION_RATE,
      minVisits: config.FLAG_CONVERSION_VISITS,
      visitsWithoutSale: config.FLAG_CONVERSION_NONE,
    })
  return flagUnusual(platform, tx, linkIds, {
    kind: 'conversion_unusual',
    subjectType: 'affiliate_link',
    windowStart: firstDay * DAY_MS,
    // Visits are totals by day: after a resolved flag, counting starts with the next whole day.
    tally: (ids, since) => tallyLinks(tx, ids, Math.ceil(since / DAY_MS), lastDay),
    isUnusual: (tally) => judge(tally) !== null,
    flag: async (linkId, tally) => ({
      summary: conversionSummary(judge(tally), tally),
      evidence: {
        ...tally,
        conversion: judge(tally),
        within_days: config.FLAG_CONVERSION_DAYS,
        ...(await aboutLink(tx, linkId)),
      },
    }),
  })
}

function conversionSummary(conversion: ReturnType<typeof unusualConversion>, tally: LinkTally): string {
  if (conversion === 'none') return `A link had ${tally.visits} visits and sold nothing.`
  if (conversion === 'too_high') return `A link sold to ${tally.sales} of ${tally.visits} visits.`
  return `A link sold ${tally.sales} times with ${tally.clicks} clicks.`
}
