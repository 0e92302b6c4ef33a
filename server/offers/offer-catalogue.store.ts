import { type RawBuilder, sql } from 'kysely'
import type { BasisPoints } from '../../shared/rates.ts'
import type { OfferSort } from '../../shared/schemas/offers.ts'
import type { Dialect, Queries } from '../platform/database.ts'
import { foldedKey, foldedWords } from '../platform/folded-text.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import { OFFER_COLUMNS, type OfferRow } from './offers.store.ts'

/** Whose offers a list shows: live ones of active merchants, or one merchant's own. */
export type OfferScope =
  | { kind: 'public' }
  | { kind: 'own'; merchantId: string; status: OfferStatus | undefined }

export interface OfferFilter {
  /** The whole name, in any case and spelling. */
  category?: string | undefined
  niche?: string | undefined
  /** Basis points, both inclusive. */
  commissionMin?: BasisPoints | undefined
  commissionMax?: BasisPoints | undefined
  merchantId?: string | undefined
  /** Words that title and description must hold together, the last one as the beginning of a word. */
  text?: string | undefined
}

/** The last offer of the page before. */
export interface OfferPosition {
  commissionRate: BasisPoints
  id: string
}

export interface OfferListing {
  scope: OfferScope
  filter: OfferFilter
  sort: OfferSort
  after: OfferPosition | null
  limit: number
}

/** Up to this many matches of a text are sorted; more are met often enough on a walk along the list's own index. */
export const MOST_SORTED_MATCHES = 1000

type How = 'all' | 'gather' | 'walk'

/** An offer with the display name of its merchant. */
export type ListedOffer = OfferRow & { merchant_name: string }

/** Up to `limit` offers after `after`, in the order of `sort`; equal rates come newest first. */
export async function listOffers(
  db: Queries,
  dialect: Dialect,
  listing: OfferListing,
): Promise<ListedOffer[]> {
  const words = listing.filter.text === undefined ? null : foldedWords(listing.filter.text)
  // A text without any word, such as a lone quotation mark, is in no offer.
  if (words?.length === 0) return []
  const text = words && TEXT[dialect](words)
  const how = text ? await wayToFind(db, text) : 'all'
  const rows: ListedOffer[] = []
  for (const leg of legsOf(listing)) {
    const limit = listing.limit - rows.length
    if (limit > 0) rows.push(...(await legQuery(dialect, listing, leg, limit, text, how).execute(db)).rows)
  }
  return rows
}

/** The statements of a list, for tests of their plans. */
export function listStatements(dialect: Dialect, listing: OfferListing, how: How): RawBuilder<ListedOffer>[] {
  const text = how === 'all' ? null : TEXT[dialect](foldedWords(listing.filter.text ?? ''))
  return legsOf(listing).map((leg) => legQuery(dialect, listing, leg, listing.limit, text, how))
}

/** What of a text search differs between the databases. */
interface TextSearch {
  /** One row for each offer that matches, whatever else is asked for. */
  matches: RawBuilder<unknown>
  /** Only those offers, found by the full-text index, to stand in place of the table. */
  gathered: RawBuilder<unknown>
  /** Whether one offer matches. */
  condition: RawBuilder<unknown>
}

/** The words hold letters, digits, signs and emoji only, so quoting them is enough. */
const TEXT: Record<Dialect, (words: readonly string[]) => TextSearch> = {
  sqlite(words) {
    const query = `${words.map((word) => `"${word}"`).join(' AND ')} *`
    const found = sql`select rowid from offer_search where offer_search match ${query}`
    return {
      matches: found,
      // `cross join` keeps SQLite to the written order.
      gathered: sql`(${found}) as found
        cross join offer_search_rows on offer_search_rows.number = found.rowid
        cross join offers on offers.id = offer_search_rows.offer_id`,
      condition: sql`(select number from offer_search_rows where offer_id = offers.id) in (${found})`,
    }
  },
  postgresql(words) {
    const query = `${words.map((word) => `'${word}'`).join(' & ')}:*`
    const condition = sql`search_vector @@ cast(${query} as tsquery)`
    return {
      matches: sql`select 1 from offers where ${condition}`,
      // `offset 0` keeps PostgreSQL from walking the list's index past all that do not match.
      gathered: sql`(select * from offers where ${condition} offset 0) as offers`,
      condition,
    }
  },
}

/** Few matches are gathered and sorted; with many, sorting would cost more than walking along until enough are met. */
async function wayToFind(db: Queries, text: TextSearch): Promise<How> {
  const bound = sql.lit(MOST_SORTED_MATCHES + 1)
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (${text.matches} limit ${bound}) as found`.execute(db)
  return (rows[0]?.count ?? 0) <= MOST_SORTED_MATCHES ? 'gather' : 'walk'
}

/** A stretch of a list's index: rates between `low` and `high`, and of them the offers older than `olderThan`. */
interface Leg {
  low: BasisPoints | undefined
  high: BasisPoints | undefined
  olderThan: string | undefined
}

/**
 * The stretches that follow a position, in their order. By commission there are two, the rest of the position's own rate
 * and the rates beyond it: one condition over both could not be looked up in an index.
 */
function legsOf({ filter, sort, after }: OfferListing): Leg[] {
  const range = { low: filter.commissionMin, high: filter.commissionMax }
  if (after === null) return [{ ...range, olderThan: undefined }]
  if (sort === 'newest') return [{ ...range, olderThan: after.id }]
  const rate = after.commissionRate
  const beyond = sort === 'commission_desc' ? { high: rate - 1 } : { low: rate + 1 }
  const legs = [
    { low: rate, high: rate, olderThan: after.id },
    { low: undefined, high: undefined, ...beyond, olderThan: undefined },
  ]
  return legs
    .map((leg) => ({
      low: Math.max(leg.low ?? 0, range.low ?? 0),
      high: Math.min(leg.high ?? Number.MAX_SAFE_INTEGER, range.high ?? Number.MAX_SAFE_INTEGER),
      olderThan: leg.olderThan,
    }))
    .filter((leg) => leg.low <= leg.high)
}

/** Written once: a list is asked for often, and a statement's text is half of what a page costs beside the database. */
const LISTED = sql.raw(
  [
    ...OFFER_COLUMNS.map((column) => `offers.${column}`),
    '(select display_name from users where users.id = offers.merchant_id) as merchant_name',
  ].join(', '),
)

function legQuery(
  dialect: Dialect,
  listing: OfferListing,
  leg: Leg,
  limit: number,
  text: TextSearch | null,
  how: How,
): RawBuilder<ListedOffer> {
  const conditions = [...inScope(listing.scope), ...matching(listing.filter), ...within(leg)]
  if (text && how === 'walk') conditions.push(text.condition)
  const source = text && how === 'gather' ? text.gathered : sql`offers ${indexHint(dialect, listing)}`
  return sql`select ${LISTED} from ${source} where ${sql.join(conditions, sql` and `)}
    order by ${ORDER[listing.sort]} limit ${limit}`
}

/** `live` stands as a literal in the statement: SQLite takes a partial index for no bound value. */
function inScope(scope: OfferScope): RawBuilder<unknown>[] {
  if (scope.kind === 'own') {
    const own = sql`offers.merchant_id = ${scope.merchantId}`
    return scope.status === undefined ? [own] : [own, sql`offers.status = ${scope.status}`]
  }
  // Suspended merchants are few, and the databases look them up once a statement.
  return [
    sql`offers.status = 'live'`,
    sql`offers.merchant_id not in (select id from users where suspended_at is not null)`,
  ]
}

function matching(filter: OfferFilter): RawBuilder<unknown>[] {
  const { category, niche, merchantId } = filter
  const conditions: RawBuilder<unknown>[] = []
  if (category !== undefined) conditions.push(sql`offers.category_key = ${foldedKey(category)}`)
  if (niche !== undefined) conditions.push(sql`offers.niche_key = ${foldedKey(niche)}`)
  if (merchantId !== undefined) conditions.push(sql`offers.merchant_id = ${merchantId}`)
  return conditions
}

function within({ low, high, olderThan }: Leg): RawBuilder<unknown>[] {
  const conditions: RawBuilder<unknown>[] = []
  if (low !== undefined && low === high) conditions.push(sql`offers.commission_rate = ${low}`)
  else {
    if (low) conditions.push(sql`offers.commission_rate >= ${low}`)
    if (high !== undefined && high < Number.MAX_SAFE_INTEGER) {
      conditions.push(sql`offers.commission_rate <= ${high}`)
    }
  }
  if (olderThan !== undefined) conditions.push(sql`offers.id < ${olderThan}`)
  return conditions
}

const ORDER: Record<OfferSort, RawBuilder<unknown>> = {
  newest: sql`offers.id desc`,
  commission_desc: sql`offers.commission_rate desc, offers.id desc`,
  commission_asc: sql`offers.commission_rate, offers.id desc`,
}

const INDEX_ORDER = { newest: 'newest', commission_desc: 'high', commission_asc: 'low' } as const

/**
 * SQLite is told the index. By itself it takes, with statistics or without, one that makes it sort or walk past offers
 * that ended long ago; PostgreSQL weighs the costs.
 */
function indexHint(dialect: Dialect, { scope, filter, sort }: OfferListing): RawBuilder<unknown> {
  if (dialect !== 'sqlite') return sql``
  return sql`indexed by ${sql.id(`offers_${prefixOf(scope, filter)}_${INDEX_ORDER[sort]}`)}`
}

function prefixOf(scope: OfferScope, { merchantId, category, niche }: OfferFilter): string {
  if (scope.kind === 'own' || merchantId !== undefined) return 'merchant'
  if (category !== undefined && niche !== undefined) return 'category_niche'
  if (category !== undefined) return 'category'
  return niche === undefined ? 'live' : 'niche'
}
