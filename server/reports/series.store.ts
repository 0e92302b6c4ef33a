import { type RawBuilder, sql } from 'kysely'
import { DAY_MS } from '../../shared/durations.ts'
import type { SeriesKey } from '../../shared/schemas/summaries.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import { firstIdAt, ID_SLACK_MS } from '../platform/ids.ts'
import type { offsetsWithin } from '../platform/local-days.ts'
import { decidedAgainIds, ownedBy } from './summaries.store.ts'

/** More keys than this are not read. */
const MOST_KEYS = 50_000

/** Local days, both inclusive, and the times (epoch ms) between which they lie. */
export interface SeriesDays {
  first: number
  last: number
  from: number
  to: number
  offsets: ReturnType<typeof offsetsWithin>
}

/** Tracked visits by key. In a row with a slot, which is not counted into days yet, `key` is not a day. */
export interface VisitRow {
  key: string
  slot: number | null
  sub_id: string
  visits: number
  unique_visits: number
}

const LINK_KEYS = { day: sql`''`, link: sql`link.id`, offer: sql`link.offer_id`, sub_id: sql`''` }

/** In one statement, so that the roll-up of clicks does not come between the two halves. */
export async function visitsBy(
  db: Queries,
  linkIds: readonly string[],
  by: SeriesKey,
  { first, last }: SeriesDays,
) {
  const ofLinks = inList(dialectOf(db), 'uuid', linkIds)
  const key = by === 'day' ? sql`day.day` : by === 'sub_id' ? sql`day.sub_id` : LINK_KEYS[by]
  const ofAll = by === 'sub_id' ? sql`` : sql`and day.sub_id = ''`
  const { rows } = await sql<VisitRow>`
    select * from (
      select cast(${key} as text) as key, cast(null as integer) as slot, '' as sub_id,
        sum(day.visits) as visits, sum(day.unique_visits) as unique_visits
      from click_days as day join affiliate_links as link on link.id = day.link_id
      where day.link_id ${ofLinks} and day.day between ${first} and ${last} ${ofAll}
      group by ${key}
      limit ${MOST_KEYS}
    ) as counted
    union all
    select cast(${LINK_KEYS[by]} as text) as key, fresh.slot, fresh.sub_id, sum(fresh.visits), sum(fresh.unique_visits)
    from uncounted_clicks as fresh join affiliate_links as link on link.id = fresh.link_id
    where fresh.link_id ${ofLinks}
    group by link.id, link.offer_id, fresh.slot, fresh.sub_id`.execute(db)
  return rows
}

/** Sales decided in the days by key; amounts (paisa) of the accepted ones. */
export interface SaleRowOfKey {
  key: string | null
  sales: number
  rejected: number
  net_amount: number
  commission: number
}

/** As `countOutcomes`: sales decided once by the index on scope and id, the few others by theirs. `null` is the key of sales without one. */
export async function salesBy(db: Queries, scope: OwnScope, by: SeriesKey, days: SeriesDays) {
  const day = localDayOf(sql`coalesce(decided.decided_at, decided.created_at)`, days)
  const keys = { day, link: sql`decided.link_id`, offer: sql`decided.offer_id`, sub_id: sql`click.sub_id` }
  const key = keys[by]
  const { from, to } = days
  const columns = sql`link_id, offer_id, click_id, acceptance_status, net_amount, commission, created_at, decided_at`
  const accepted = (column: RawBuilder<unknown>) =>
    sql`coalesce(sum(case when decided.acceptance_status = 'accepted' then ${column} end), 0)`
  const ofLinks = sql`left join clicks as click on click.id = decided.click_id where decided.link_id is not null and`
  const { rows } = await sql<SaleRowOfKey>`
    select cast(${key} as text) as key, ${accepted(sql`1`)} as sales, count(*) - ${accepted(sql`1`)} as rejected,
      ${accepted(sql`net_amount`)} as net_amount, ${accepted(sql`commission`)} as commission
    from (
      select ${columns} from sales where ${ownedBy(scope)} and decided_at is null
        and id >= ${firstIdAt(from - ID_SLACK_MS)} and id < ${firstIdAt(to + ID_SLACK_MS)}
      union all
      select ${columns} from sales where ${ownedBy(scope)} and id in ${decidedAgainIds(db, from, to)}
    ) as decided
    ${by === 'sub_id' ? ofLinks : sql`where`} ${day} between ${days.first} and ${days.last}
    group by ${key}
    limit ${MOST_KEYS}`.execute(db)
  return rows
}

/** The local day of a time. */
function localDayOf(time: RawBuilder<unknown>, { offsets }: SeriesDays): RawBuilder<unknown> {
  const dayAt = (offset: number) => sql`(${time} + ${sql.lit(offset)}) / ${sql.lit(DAY_MS)}`
  const [first, ...later] = offsets
  const cases = later
    .toReversed()
    .map(({ since, offset }) => sql`when ${time} >= ${sql.lit(since)} then ${dayAt(offset)}`)
  return sql`(case ${sql.join([...cases, sql`when true then ${dayAt(first?.offset ?? 0)}`], sql` `)} end)`
}
