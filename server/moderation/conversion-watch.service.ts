import { linkRecords } from '../links/links.service.ts'
import type { Tx } from '../platform/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { raiseFlag } from './flags.service.ts'
import { type LinkTally, unusualConversion } from './sale-pattern.rule.ts'
import {
  addVisitsOfDay,
  DAY_MS,
  dayOf,
  firstClickFrom,
  forgetDaysBefore,
  muchVisited,
  salesBetween,
  tallyLinks,
} from './sale-patterns.store.ts'
import { SALES_LAG_MS } from './sale-watch.service.ts'
import { unusualSubjects } from './since-resolved.service.ts'
import { lockWatermark, moveWatermark } from './watermarks.store.ts'

const VISITS = 'moderation.visits'
const SALES = 'moderation.conversions'
const SALES_AT_ONCE = 2000
/** As the roll-up of click counts: a click whose id is older is on disk, or will never be. */
const CLICKS_LAG_MS = 10_000
/** The most visits' time that is summed up in one transaction, so that none holds up the redirect's writes. */
const LONGEST_SLICE_MS = 900_000

/**
 * Sums up the visits that have come since the last time by link and day, each click read once, and judges the links that were
 * sold through meanwhile, or visited on a day that is over. Answers whether more waits.
 */
export async function watchConversions(platform: Platform): Promise<boolean> {
  const now = platform.clock.now()
  if (await platform.database.transaction((tx) => sumUpVisits(platform, tx, now))) return true
  return platform.database.transaction((tx) => judgeSellingLinks(platform, tx, now))
}

async function sumUpVisits(platform: Platform, tx: Tx, now: number): Promise<boolean> {
  const { FLAG_CONVERSION_DAYS: days } = platform.config
  const watermark = await lockWatermark(tx, VISITS, firstIdAt((dayOf(now) - days) * DAY_MS))
  const from = timeOf(watermark)
  const bound = now - CLICKS_LAG_MS
  if (bound <= from) return false
  const day = dayOf(from)
  const dayEnd = (day + 1) * DAY_MS
  const end = Math.min(bound, dayEnd)
  const click = await firstClickFrom(tx, watermark)
  const to = click === null ? end : Math.min(end, Math.max(from, timeOf(click)) + LONGEST_SLICE_MS)
  await addVisitsOfDay(tx, watermark, firstIdAt(to), day)
  await moveWatermark(tx, VISITS, firstIdAt(to))
  if (to === dayEnd) await judgeDay(platform, tx, day)
  return to < bound
}

/** Much visited links of a day that is over: have they sold anything at all? */
async function judgeDay(platform: Platform, tx: Tx, day: number): Promise<void> {
  const { FLAG_CONVERSION_DAYS: days, FLAG_CONVERSION_NONE: visits } = platform.config
  const firstDay = day - days + 1
  if (visits > 0) {
    await flagUnusual(platform, tx, firstDay, await muchVisited(tx, day, firstDay, visits))
  }
  await forgetDaysBefore(tx, firstDay)
}

/** Goes no further than the visits have been summed up: a sale without its visits would look too good. */
async function judgeSellingLinks(platform: Platform, tx: Tx, now: number): Promise<boolean> {
  const firstDay = dayOf(now) - platform.config.FLAG_CONVERSION_DAYS + 1
  const summedUpTo = await lockWatermark(tx, VISITS, firstIdAt(firstDay * DAY_MS))
  const from = await lockWatermark(tx, SALES, firstIdAt(firstDay * DAY_MS))
  const to = [summedUpTo, firstIdAt(now - SALES_LAG_MS)].sort()[0] as string
  if (to <= from) return false
  const sales = await salesBetween(tx, from, to, SALES_AT_ONCE)
  const sold = sales.flatMap((sale) => (sale.acceptance_status === 'accepted' ? (sale.link_id ?? []) : []))
  await flagUnusual(platform, tx, firstDay, [...new Set(sold)])
  const more = sales.length === SALES_AT_ONCE
  await moveWatermark(tx, SALES, (more && sales.at(-1)?.id) || to)
  return more
}

async function flagUnusual(
  platform: Platform,
  tx: Tx,
  firstDay: number,
  linkIds: readonly string[],
): Promise<void> {
  const { config } = platform
  const judge = (tally: LinkTally) =>
    unusualConversion(tally, {
      rate: config.FLAG_CONVERSION_RATE,
      leastVisits: config.FLAG_CONVERSION_VISITS,
      visitsWithoutSale: config.FLAG_CONVERSION_NONE,
    })
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'conversion_unusual',
      windowStart: firstDay * DAY_MS,
      // Visits are known by the day: after a resolved flag the next whole day is the first that counts.
      tally: (ids, since) => tallyLinks(tx, ids, Math.ceil(since / DAY_MS)),
      isUnusual: (tally) => judge(tally) !== null,
    },
    linkIds,
  )
  const links = await linkRecords(tx, [...unusual.keys()])
  for (const [linkId, tally] of unusual) {
    const link = links.get(linkId)
    await raiseFlag(platform, tx, {
      kind: 'conversion_unusual',
      subjectType: 'affiliate_link',
      subjectId: linkId,
      summary:
        judge(tally) === 'too_high'
          ? `A link sold to ${tally.sales} of ${tally.visits} visits.`
          : `A link had ${tally.visits} visits and sold nothing.`,
      evidence: {
        ...tally,
        conversion: judge(tally),
        within_days: config.FLAG_CONVERSION_DAYS,
        affiliate_link_slug: link?.slug,
        creator_id: link?.creatorId,
        merchant_id: link?.merchantId,
        offer_id: link?.offerId,
      },
    })
  }
}

/** When a UUIDv7 was made, epoch ms. */
function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
