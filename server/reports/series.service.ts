import { DAY_MS } from '../../shared/durations.ts'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import type { Series, SeriesKey } from '../../shared/schemas/summaries.ts'
import { SLOT_MS } from '../clicks/clicks.service.ts'
import { linkRecords } from '../links/links.service.ts'
import { offerRecords } from '../offers/offers.service.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import { dateOfDay, localDay, offsetsWithin } from '../platform/local-days.ts'
import type { Platform } from '../platform/platform.ts'
import { peopleOf } from '../users/users.service.ts'
import { type SeriesDays, salesBy, visitsBy } from './series.store.ts'
import { type AskedPeriod, periodAsked } from './summaries.service.ts'
import { ownLinkIds } from './summaries.store.ts'

const MOST_ITEMS = 1000

interface Figures {
  clicks: number
  unique_clicks: number
  sales: number
  rejected: number
  net_amount: number
  commission: number
}

const nothing = (): Figures => ({
  clicks: 0,
  unique_clicks: 0,
  sales: 0,
  rejected: 0,
  net_amount: 0,
  commission: 0,
})

/**
 * Visits, and sales by their decision, of a merchant or creator, in whole days of BILLING_TIMEZONE. Days are in order and complete; of the
 * other keys, those with most commission. Refuses a period as `creatorSummary` does.
 */
export async function seriesOf(
  platform: Platform,
  scope: OwnScope,
  by: SeriesKey,
  asked: AskedPeriod,
): Promise<Series> {
  const zone = platform.config.BILLING_TIMEZONE
  const days = daysOf(periodAsked(platform, asked), zone)
  const figures = await countFigures(platform, scope, by, days)
  const items = by === 'day' ? [...figures] : mostFirst(figures)
  const names = await namesOf(
    platform,
    scope,
    by,
    items.map(([key]) => key),
  )
  return {
    items: items.map(([key, { net_amount, commission, ...counts }]) => ({
      ...(names.get(key) ?? { key, label: key }),
      ...counts,
      net_amount: formatMoney(net_amount),
      commission: formatMoney(commission),
    })),
    currency: CURRENCY,
    timezone: zone,
  }
}

function daysOf({ from, to }: { from: number; to: number }, zone: string): SeriesDays {
  const first = localDay(from, zone)
  const last = to > from ? localDay(to - 1, zone) : first - 1
  // A day lies within a day of its time in UTC, whatever the zone.
  const bounds = { from: (first - 1) * DAY_MS, to: (last + 2) * DAY_MS }
  return { first, last, ...bounds, offsets: offsetsWithin(bounds.from, bounds.to, zone) }
}

/** Figures by key: for days, that of each in order; for links and offers, the id; the empty sub id for what has none. */
async function countFigures(
  { database: { reader }, config }: Platform,
  scope: OwnScope,
  by: SeriesKey,
  days: SeriesDays,
): Promise<Map<string, Figures>> {
  const figures = new Map<string, Figures>()
  const at = (key: string): Figures => {
    const known = figures.get(key) ?? nothing()
    figures.set(key, known)
    return known
  }
  if (by === 'day') for (let day = days.first; day <= days.last; day += 1) at(dateOfDay(day))
  const addVisits = (key: string, visits: number, unique: number) => {
    const figure = at(key)
    figure.clicks += visits
    figure.unique_clicks += unique
  }
  const linkIds = await ownLinkIds(reader, scope)
  for (const { key, slot, sub_id, visits, unique_visits } of await visitsBy(reader, linkIds, by, days)) {
    const day = slot === null ? null : localDay(slot * SLOT_MS, config.BILLING_TIMEZONE)
    if (day !== null && (day < days.first || day > days.last)) continue
    if (by === 'day') addVisits(dateOfDay(day ?? Number(key)), visits, unique_visits)
    else if (by !== 'sub_id') addVisits(key, visits, unique_visits)
    else {
      // The counted row of the empty sub id holds all visits of its day, those with a sub id too.
      const sub = day === null ? key : sub_id
      addVisits(sub, visits, unique_visits)
      if (day === null && sub !== '') addVisits('', -visits, -unique_visits)
    }
  }
  for (const { key, ...counts } of await salesBy(reader, scope, by, days)) {
    if (key === null && by !== 'sub_id') continue
    const figure = at(by === 'day' ? dateOfDay(Number(key)) : (key ?? ''))
    for (const name of ['sales', 'rejected', 'net_amount', 'commission'] as const)
      figure[name] += counts[name]
  }
  return figures
}

function mostFirst(figures: ReadonlyMap<string, Figures>): [string, Figures][] {
  return [...figures]
    .filter(([, { clicks, sales, rejected }]) => clicks + sales + rejected > 0)
    .sort(
      ([one, a], [other, b]) => b.commission - a.commission || b.clicks - a.clicks || (one < other ? -1 : 1),
    )
    .slice(0, MOST_ITEMS)
}

/** What items are called where their key is an id: a link by its slug, with the offer's title, and the creator for a merchant. */
async function namesOf(platform: Platform, scope: OwnScope, by: SeriesKey, ids: readonly string[]) {
  const { reader } = platform.database
  const names = new Map<string, { key: string; label: string }>()
  if (by === 'offer') {
    for (const [id, { title }] of await offerRecords(platform, reader, ids))
      names.set(id, { key: id, label: title })
  }
  if (by !== 'link') return names
  const links = [...(await linkRecords(reader, ids)).values()]
  const offers = await offerRecords(
    platform,
    reader,
    links.map((link) => link.offer_id),
  )
  const people = await peopleOf(
    reader,
    links.map((link) => link.creator_id),
  )
  for (const { id, slug, offer_id, creator_id } of links) {
    const title = offers.get(offer_id)?.title ?? ''
    const label = 'merchantId' in scope ? `${title}, ${people.get(creator_id)?.display_name ?? ''}` : title
    names.set(id, { key: slug, label })
  }
  return names
}
