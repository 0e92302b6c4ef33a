import { CompiledQuery } from 'kysely'
import type { z } from 'zod'
import type { BasisPoints } from '../../shared/rates.ts'
import type { listOffersInput, OfferSort } from '../../shared/schemas/offers.ts'
import { LEAST_DECIDED } from '../pending-orders/pending-order.rule.ts'
import type { Dialect, Queries } from '../platform/database/database.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import { OFFER_COLUMNS, type OfferRow } from './offers.store.ts'

/** Whose offers a list shows: live ones of active merchants, or one merchant's own. */
export type OfferScope =
  | { kind: 'public' }
  | { kind: 'own'; merchantId: string; status: OfferStatus | undefined }

/** As on the wire, but rates in basis points. */
export type OfferFilter = Partial<
  Pick<
    z.output<typeof listOffersInput>,
    'category' | 'niche' | 'commission_min' | 'commission_max' | 'paid_rate_min' | 'merchant_id' | 'q'
  >
>

/** The last offer of the previous page. */
export interface OfferPosition {
  commissionRate: BasisPoints
  id: string
}

export interface OfferListing {
  scope: OfferScope
  filter: OfferFilter
  /** `paid_rate_min` counts the orders placed since then, epoch ms. */
  paidRatesSince: number
  sort: OfferSort
  after: OfferPosition | null
  limit: number
}

/** Up to this many text matches are collected and sorted; beyond that, the index of the sort is scanned until a page is full. */
export const MOST_SORTED_MATCHES = 1000

type SearchPlan = 'none' | 'collect' | 'scan'

/** An offer with the display name of its merchant. */
export type ListedOffer = OfferRow & { merchant_name: string }

/** Up to `limit` offers after `after`, in the order of `sort`; of equal rates the newest first. */
export async function listOffers(db: Queries, dialect: Dialect, listing: OfferListing) {
  const words = listing.filter.q === undefined ? null : foldedWords(listing.filter.q)
  // A text without any word, such as a single quotation mark, is in no offer.
  if (words?.length === 0) return []
  const plan = words ? await searchPlan(db, dialect, words) : 'none'
  const rows: ListedOffer[] = []
  for (const range of indexRanges(listing)) {
    const limit = listing.limit - rows.length
    if (limit === 0) break
    const statement = rangeStatement(dialect, { ...listing, limit }, range, words, plan)
    rows.push(...(await db.executeQuery(statement)).rows)
  }
  return rows
}

/** The number of live offers of active merchants by category and niche, the most used first, up to `limit`. */
export async function countByCategory(db: Queries, dialect: Dialect, limit: number) {
  const { join, isActive } = MERCHANT[dialect]
  const hint = dialect === 'sqlite' ? 'indexed by offers_category_niche_newest' : ''
  const statement = rawStatement<{ category: string; niche: string; offers: number }>(
    dialect,
    () => `select min(offers.category) as category, min(offers.niche) as niche, count(*) as offers
      from offers ${hint} ${join} where offers.status = 'live' and ${isActive}
      group by offers.category_key, offers.niche_key
      order by count(*) desc, offers.category_key, offers.niche_key limit ${limit}`,
  )
  return (await db.executeQuery(statement)).rows
}

/** The statements of a list, for tests of their query plans. */
export function listStatements(dialect: Dialect, listing: OfferListing, plan: SearchPlan) {
  const words = plan === 'none' ? null : foldedWords(listing.filter.q ?? '')
  return indexRanges(listing).map((range) => rangeStatement(dialect, listing, range, words, plan))
}

/** Adds a bound value to a statement; returns its placeholder. */
type Bind = (value: unknown) => string

/** A statement written as text, because compiling one with the query builder takes longer than the rest of the request. */
function rawStatement<Row>(dialect: Dialect, text: (bind: Bind) => string): CompiledQuery<Row> {
  const values: unknown[] = []
  const bind = (value: unknown) => {
    values.push(value)
    return dialect === 'sqlite' ? '?' : `$${values.length}`
  }
  return CompiledQuery.raw(text(bind), values) as CompiledQuery<Row>
}

/** The parts of a text search that differ between the databases. */
interface TextSearch {
  /** A query with one row for each matching offer. */
  matches(words: readonly string[], bind: Bind): string
  /** A row source of only the matching offers, found by the full-text index. */
  collected(words: readonly string[], bind: Bind): string
  /** Whether one offer matches. */
  condition(words: readonly string[], bind: Bind): string
}

/** Words consist of letters, digits, signs and emoji only, so quoting them is enough. */
const TEXT: Record<Dialect, TextSearch> = {
  sqlite: {
    matches: (words, bind) =>
      `select rowid from offer_search where offer_search match ${bind(
        `${words.map((word) => `"${word}"`).join(' AND ')} *`,
      )}`,
    // `cross join` makes SQLite keep this order.
    collected: (words, bind) => `(${TEXT.sqlite.matches(words, bind)}) as found
      cross join offer_search_rows on offer_search_rows.number = found.rowid
      cross join offers on offers.id = offer_search_rows.offer_id`,
    condition: (words, bind) =>
      `(select number from offer_search_rows where offer_id = offers.id) in (${TEXT.sqlite.matches(words, bind)})`,
  },
  postgresql: {
    matches: (words, bind) => `select 1 from offers where ${TEXT.postgresql.condition(words, bind)}`,
    // `offset 0` stops PostgreSQL from scanning the index of the sort past everything that does not match.
    collected: (words, bind) =>
      `(select * from offers where ${TEXT.postgresql.condition(words, bind)} offset 0) as offers`,
    condition: (words, bind) =>
      `search_vector @@ cast(${bind(`${words.map((word) => `'${word}'`).join(' & ')}:*`)} as tsquery)`,
  },
}

/** Sorting few matches is cheaper than scanning; sorting many is not. */
async function searchPlan(db: Queries, dialect: Dialect, words: readonly string[]): Promise<SearchPlan> {
  const counting = rawStatement<{ count: number }>(
    dialect,
    (bind) =>
      `select count(*) as count from (${TEXT[dialect].matches(words, bind)} limit ${MOST_SORTED_MATCHES + 1}) as found`,
  )
  const { rows } = await db.executeQuery(counting)
  return (rows[0]?.count ?? 0) <= MOST_SORTED_MATCHES ? 'collect' : 'scan'
}

/** A contiguous range of the list's index. */
interface IndexRange {
  /** The lowest and highest rate, both inclusive. */
  low: BasisPoints | undefined
  high: BasisPoints | undefined
  /** Only offers older than this one. */
  olderThan?: string | undefined
  /** Only lower rates, and older offers of the same rate. */
  below?: OfferPosition | undefined
}

/**
 * The index ranges that follow a position, in list order. Ascending rates take two, the rest of the position's own rate and the rates
 * above it: within one rate the newest come first, so no single row comparison covers both.
 */
function indexRanges({ filter, sort, after }: OfferListing): IndexRange[] {
  const { commission_min: low, commission_max: high } = filter
  if (after === null) return [{ low, high }]
  if (sort === 'newest') return [{ low, high, olderThan: after.id }]
  const rate = after.commissionRate
  if (sort === 'commission_desc') {
    // Above the range, everything in the range follows; within it, the position is the upper bound.
    return high !== undefined && rate > high ? [{ low, high }] : [{ low, high: undefined, below: after }]
  }
  const ranges: IndexRange[] = []
  if (rate >= (low ?? 0) && rate <= (high ?? rate))
    ranges.push({ low: rate, high: rate, olderThan: after.id })
  if (rate < (high ?? Number.MAX_SAFE_INTEGER)) ranges.push({ low: Math.max(rate + 1, low ?? 0), high })
  return ranges
}

/** How a statement reads an offer's merchant. */
const MERCHANT = {
  // SQLite keeps the order of a `cross join`; looking up each merchant costs it less than a list of the suspended ones.
  sqlite: {
    join: 'cross join users on users.id = offers.merchant_id',
    name: 'users.display_name',
    isActive: 'users.suspended_at is null',
  },
  // A join can make PostgreSQL read all users; the suspended ones are few.
  postgresql: {
    join: '',
    name: '(select display_name from users where users.id = offers.merchant_id)',
    isActive: 'offers.merchant_id not in (select id from users where suspended_at is not null)',
  },
}

const COLUMNS = OFFER_COLUMNS.map((column) => `offers.${column}`).join(', ')

function rangeStatement(
  dialect: Dialect,
  listing: OfferListing,
  range: IndexRange,
  words: readonly string[] | null,
  plan: SearchPlan,
): CompiledQuery<ListedOffer> {
  const { join, name, isActive } = MERCHANT[dialect]
  return rawStatement(dialect, (bind) => {
    const source =
      words && plan === 'collect'
        ? TEXT[dialect].collected(words, bind)
        : `offers ${indexHint(dialect, listing)}`
    const conditions = [
      ...scopeConditions(listing.scope, isActive, bind),
      ...filterConditions(listing, bind),
      ...rangeConditions(range, bind),
      ...(words && plan === 'scan' ? [TEXT[dialect].condition(words, bind)] : []),
    ].join(' and ')
    // The limit is a literal, because a bound one makes SQLite slower.
    return `select ${COLUMNS}, ${name} as merchant_name from ${source} ${join} where ${conditions}
      order by ${ORDER[listing.sort]} limit ${listing.limit}`
  })
}

/** `live` is a literal, because SQLite uses no partial index for a bound value. */
function scopeConditions(scope: OfferScope, isActive: string, bind: Bind): string[] {
  if (scope.kind === 'public') return [`offers.status = 'live'`, isActive]
  const own = `offers.merchant_id = ${bind(scope.merchantId)}`
  return scope.status === undefined ? [own] : [own, `offers.status = ${bind(scope.status)}`]
}

function filterConditions({ filter, paidRatesSince }: OfferListing, bind: Bind): string[] {
  const { category, niche, merchant_id, paid_rate_min } = filter
  const conditions: string[] = []
  if (category !== undefined) conditions.push(`offers.category_key = ${bind(foldedKey(category))}`)
  if (niche !== undefined) conditions.push(`offers.niche_key = ${bind(foldedKey(niche))}`)
  if (merchant_id !== undefined) conditions.push(`offers.merchant_id = ${bind(merchant_id)}`)
  if (paid_rate_min !== undefined) conditions.push(paidRateCondition(paid_rate_min, paidRatesSince, bind))
  return conditions
}

/** Whether `paidRate` is at least this: the same rounding in whole numbers, read from one index of the orders. */
function paidRateCondition(least: BasisPoints, since: number, bind: Bind): string {
  const decided = `count(*) filter (where state <> 'pending')`
  const paid = `count(*) filter (where state = 'became_sale')`
  return `(select ${decided} >= ${LEAST_DECIDED} and 20000 * ${paid} >= ${bind(2 * least - 1)} * ${decided}
    from pending_orders where offer_id = offers.id and placed_at >= ${bind(since)})`
}

function rangeConditions({ low, high, olderThan, below }: IndexRange, bind: Bind): string[] {
  const conditions: string[] = []
  if (low !== undefined && low === high) conditions.push(`offers.commission_rate = ${bind(low)}`)
  else {
    if (low !== undefined) conditions.push(`offers.commission_rate >= ${bind(low)}`)
    if (high !== undefined) conditions.push(`offers.commission_rate <= ${bind(high)}`)
  }
  if (olderThan !== undefined) conditions.push(`offers.id < ${bind(olderThan)}`)
  if (below) {
    conditions.push(
      `(offers.commission_rate, offers.id) < (${bind(below.commissionRate)}, ${bind(below.id)})`,
    )
  }
  return conditions
}

const ORDER: Record<OfferSort, string> = {
  newest: 'offers.id desc',
  commission_desc: 'offers.commission_rate desc, offers.id desc',
  commission_asc: 'offers.commission_rate, offers.id desc',
}

const INDEX_ORDER = { newest: 'newest', commission_desc: 'high', commission_asc: 'low' } as const

/** SQLite chooses an index that makes it sort, or scan past ended offers, so it is given one; PostgreSQL chooses by cost. */
function indexHint(dialect: Dialect, { scope, filter, sort }: OfferListing): string {
  return dialect === 'sqlite' ? `indexed by offers_${prefixOf(scope, filter)}_${INDEX_ORDER[sort]}` : ''
}

function prefixOf(scope: OfferScope, { merchant_id, category, niche }: OfferFilter): string {
  if (scope.kind === 'own' || merchant_id !== undefined) return 'merchant'
  if (category !== undefined && niche !== undefined) return 'category_niche'
  if (category !== undefined) return 'category'
  return niche === undefined ? 'live' : 'niche'
}
