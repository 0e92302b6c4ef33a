import { CompiledQuery } from 'kysely'
import type { BasisPoints } from '../../shared/rates.ts'
import type { OfferSort } from '../../shared/schemas/offers.ts'
import type { Dialect, Queries } from '../platform/database/database.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
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

type OfferColumn = keyof OfferRow
const PLACE = ['id', 'updated_at'] as const

/** Which offer stands at a place of a list, and what tells whether it is as it was: every change moves `updated_at`. */
export type ListedPlace = Pick<ListedOffer, (typeof PLACE)[number] | 'merchant_name'>

/** Up to `limit` offers after `after`, in the order of `sort`; equal rates come newest first. */
export async function listOffers(
  db: Queries,
  dialect: Dialect,
  listing: OfferListing,
): Promise<ListedOffer[]> {
  const words = listing.filter.text === undefined ? null : foldedWords(listing.filter.text)
  // A text without any word, such as a lone quotation mark, is in no offer.
  if (words?.length === 0) return []
  const how = words ? await wayToFind(db, dialect, words) : 'all'
  return walkLegs(listing, (leg, limit) =>
    db.executeQuery(legQuery<ListedOffer>(dialect, { ...listing, limit }, leg, OFFER_COLUMNS, words, how)),
  )
}

/** The same for a list without a text, with no more of each offer than where it stands. */
export async function listPlaces(
  db: Queries,
  dialect: Dialect,
  listing: OfferListing,
): Promise<ListedPlace[]> {
  return walkLegs(listing, (leg, limit) =>
    db.executeQuery(legQuery<ListedPlace>(dialect, { ...listing, limit }, leg, PLACE, null, 'all')),
  )
}

async function walkLegs<Row>(
  listing: OfferListing,
  ask: (leg: Leg, limit: number) => Promise<{ rows: Row[] }>,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const leg of legsOf(listing)) {
    const limit = listing.limit - rows.length
    if (limit === 0) break
    rows.push(...(await ask(leg, limit)).rows)
  }
  return rows
}

/** The statements of a list, for tests of their plans. */
export function listStatements(dialect: Dialect, listing: OfferListing, how: How): CompiledQuery<unknown>[] {
  const words = how === 'all' ? null : foldedWords(listing.filter.text ?? '')
  return legsOf(listing).flatMap((leg) => [
    legQuery<ListedOffer>(dialect, listing, leg, OFFER_COLUMNS, words, how),
    ...(words ? [] : [legQuery<ListedPlace>(dialect, listing, leg, PLACE, null, how)]),
  ])
}

/** Notes a value for a statement, and answers what stands in its place. */
type Bind = (value: unknown) => string

/**
 * A statement that is written as text, all its values bound: a list is asked for often, and to put one together from parts that
 * are compiled took longer than all else between its input and the database.
 */
function written<Row>(dialect: Dialect, text: (bind: Bind) => string): CompiledQuery<Row> {
  const values: unknown[] = []
  const bind = (value: unknown) => {
    values.push(value)
    return dialect === 'sqlite' ? '?' : `$${values.length}`
  }
  return CompiledQuery.raw(text(bind), values) as CompiledQuery<Row>
}

/** What of a text search differs between the databases. */
interface TextSearch {
  /** One row for each offer that matches, whatever else is asked for. */
  matches(words: readonly string[], bind: Bind): string
  /** Only those offers, found by the full-text index, to stand in place of the table. */
  gathered(words: readonly string[], bind: Bind): string
  /** Whether one offer matches. */
  condition(words: readonly string[], bind: Bind): string
}

/** The words hold letters, digits, signs and emoji only, so quoting them is enough. */
const TEXT: Record<Dialect, TextSearch> = {
  sqlite: {
    matches: (words, bind) =>
      `select rowid from offer_search where offer_search match ${bind(
        `${words.map((word) => `"${word}"`).join(' AND ')} *`,
      )}`,
    // `cross join` keeps SQLite to the written order.
    gathered: (words, bind) => `(${TEXT.sqlite.matches(words, bind)}) as found
      cross join offer_search_rows on offer_search_rows.number = found.rowid
      cross join offers on offers.id = offer_search_rows.offer_id`,
    condition: (words, bind) =>
      `(select number from offer_search_rows where offer_id = offers.id) in (${TEXT.sqlite.matches(words, bind)})`,
  },
  postgresql: {
    matches: (words, bind) => `select 1 from offers where ${TEXT.postgresql.condition(words, bind)}`,
    // `offset 0` keeps PostgreSQL from walking the list's index past all that do not match.
    gathered: (words, bind) =>
      `(select * from offers where ${TEXT.postgresql.condition(words, bind)} offset 0) as offers`,
    condition: (words, bind) =>
      `search_vector @@ cast(${bind(`${words.map((word) => `'${word}'`).join(' & ')}:*`)} as tsquery)`,
  },
}

/** Few matches are gathered and sorted; with many, sorting would cost more than walking along until enough are met. */
async function wayToFind(db: Queries, dialect: Dialect, words: readonly string[]): Promise<How> {
  const counting = written<{ count: number }>(
    dialect,
    (bind) =>
      `select count(*) as count from (${TEXT[dialect].matches(words, bind)} limit ${MOST_SORTED_MATCHES + 1}) as found`,
  )
  const { rows } = await db.executeQuery(counting)
  return (rows[0]?.count ?? 0) <= MOST_SORTED_MATCHES ? 'gather' : 'walk'
}

/** A stretch of a list's index: rates between `low` and `high`, and of them the offers that come after a place. */
interface Leg {
  low: BasisPoints | undefined
  high: BasisPoints | undefined
  /** Only offers older than this one. */
  olderThan?: string | undefined
  /** Only lower rates, and of the same one older offers: one step into an index that runs down on both. */
  below?: OfferPosition | undefined
}

/**
 * The stretches that follow a position, in their order. From low rates to high there are two, the rest of the position's
 * own rate and the rates beyond it: there the newer come first as the rates rise, and no one condition over both could be
 * looked up in an index.
 */
function legsOf({ filter, sort, after }: OfferListing): Leg[] {
  const range = { low: filter.commissionMin, high: filter.commissionMax }
  if (after === null) return [range]
  if (sort === 'newest') return [{ ...range, olderThan: after.id }]
  const rate = after.commissionRate
  if (sort === 'commission_desc') {
    // A place above the range: all of the range comes after it. In the range, the place itself is the upper bound.
    return range.high !== undefined && rate > range.high
      ? [range]
      : [{ low: range.low, high: undefined, below: after }]
  }
  const legs = [
    { low: rate, high: rate, olderThan: after.id },
    { low: rate + 1, high: undefined, olderThan: undefined },
  ]
  return legs
    .map((leg) => ({
      low: Math.max(leg.low, range.low ?? 0),
      high: Math.min(leg.high ?? Number.MAX_SAFE_INTEGER, range.high ?? Number.MAX_SAFE_INTEGER),
      olderThan: leg.olderThan,
    }))
    .filter((leg) => leg.low <= leg.high)
}

/** An offer's merchant: the join that brings it, its name, and whether it is active. */
interface MerchantWords {
  join: string
  name: string
  isActive: string
}

/** SQLite keeps to the order of a `cross join`, and a look at each merchant costs it less than a list of the suspended ones. */
const MERCHANT: Record<Dialect, MerchantWords> = {
  sqlite: {
    join: 'cross join users on users.id = offers.merchant_id',
    name: 'users.display_name',
    isActive: 'users.suspended_at is null',
  },
  // Suspended merchants are few and looked up once a statement; a join can make it read all users.
  postgresql: {
    join: '',
    name: '(select display_name from users where users.id = offers.merchant_id)',
    isActive: 'offers.merchant_id not in (select id from users where suspended_at is not null)',
  },
}

const ofOffers = (columns: readonly OfferColumn[]) => columns.map((column) => `offers.${column}`).join(', ')

function legQuery<Row>(
  dialect: Dialect,
  listing: OfferListing,
  leg: Leg,
  columns: readonly OfferColumn[],
  words: readonly string[] | null,
  how: How,
): CompiledQuery<Row> {
  const { join, name, isActive } = MERCHANT[dialect]
  return written(dialect, (bind) => {
    const source =
      words && how === 'gather'
        ? TEXT[dialect].gathered(words, bind)
        : `offers ${indexHint(dialect, listing)}`
    const conditions = [
      ...inScope(listing.scope, isActive, bind),
      ...matching(listing.filter, bind),
      ...within(leg, bind),
      ...(words && how === 'walk' ? [TEXT[dialect].condition(words, bind)] : []),
    ].join(' and ')
    return `select ${ofOffers(columns)}, ${name} as merchant_name from ${source} ${join} where ${conditions}
      order by ${ORDER[listing.sort]} limit ${bind(listing.limit)}`
  })
}

/** `live` stands as a literal in the statement: SQLite takes a partial index for no bound value. */
function inScope(scope: OfferScope, isActive: string, bind: Bind): string[] {
  if (scope.kind === 'public') return [`offers.status = 'live'`, isActive]
  const own = `offers.merchant_id = ${bind(scope.merchantId)}`
  return scope.status === undefined ? [own] : [own, `offers.status = ${bind(scope.status)}`]
}

function matching({ category, niche, merchantId }: OfferFilter, bind: Bind): string[] {
  const conditions: string[] = []
  if (category !== undefined) conditions.push(`offers.category_key = ${bind(foldedKey(category))}`)
  if (niche !== undefined) conditions.push(`offers.niche_key = ${bind(foldedKey(niche))}`)
  if (merchantId !== undefined) conditions.push(`offers.merchant_id = ${bind(merchantId)}`)
  return conditions
}

function within({ low, high, olderThan, below }: Leg, bind: Bind): string[] {
  const conditions: string[] = []
  if (low !== undefined && low === high) conditions.push(`offers.commission_rate = ${bind(low)}`)
  else {
    if (low) conditions.push(`offers.commission_rate >= ${bind(low)}`)
    if (high !== undefined && high < Number.MAX_SAFE_INTEGER) {
      conditions.push(`offers.commission_rate <= ${bind(high)}`)
    }
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

/**
 * SQLite is told the index. By itself it takes, with statistics or without, one that makes it sort or walk past offers
 * that ended long ago; PostgreSQL weighs the costs.
 */
function indexHint(dialect: Dialect, { scope, filter, sort }: OfferListing): string {
  return dialect === 'sqlite' ? `indexed by offers_${prefixOf(scope, filter)}_${INDEX_ORDER[sort]}` : ''
}

function prefixOf(scope: OfferScope, { merchantId, category, niche }: OfferFilter): string {
  if (scope.kind === 'own' || merchantId !== undefined) return 'merchant'
  if (category !== undefined && niche !== undefined) return 'category_niche'
  if (category !== undefined) return 'category'
  return niche === undefined ? 'live' : 'niche'
}
