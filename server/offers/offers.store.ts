import { type Selectable, sql } from 'kysely'
import type { BasisPoints } from '../../shared/rates.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf, inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
import {
  authentic,
  changeRow,
  insertRows,
  type RowOf,
  requireAuthentic,
  TamperedRow,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { OfferStatus } from './offer-status.rule.ts'

/** All columns except those that are derived for search. */
export const OFFER_COLUMNS = [
  'id',
  'merchant_id',
  'title',
  'description',
  'product_url',
  'image_url',
  'category',
  'niche',
  'commission_rate',
  'status',
  'status_count',
  'attribution_window_days',
  'product_ids',
  'vetting_verdict',
  'vetted_rate',
  'rejection_scope',
  'vetting_reason',
  'created_at',
  'updated_at',
] as const

export type OfferRow = Pick<Selectable<Schema['offers']>, (typeof OFFER_COLUMNS)[number]>
/** New values of columns; an `undefined` one is ignored. */
export type OfferChange = { [Column in keyof OfferRow]?: OfferRow[Column] | undefined }

/** Adds an offer, whose history begins with its status. */
export async function addOffer(tx: Tx, row: OfferRow): Promise<void> {
  await insertRows(tx, 'offers', [{ ...row, ...searchColumns(row) }])
  await addStatus(tx, row)
}

async function addStatus(tx: Tx, { id, status, status_count, updated_at }: OfferRow): Promise<void> {
  await insertRows(tx, 'offer_status_changes', [
    { offer_id: id, sequence: status_count, status, changed_at: updated_at },
  ])
}

/**
 * Gives a locked offer new values, and the search columns that follow from them; a new status is added to its history. Returns whether a value
 * is new.
 */
export async function assignOffer(
  tx: Tx,
  offer: RowOf<'offers'>,
  change: OfferChange,
  now: number,
): Promise<boolean> {
  const changed: Partial<OfferRow> = Object.fromEntries(
    Object.entries(change).filter(
      ([column, value]) => value !== undefined && value !== offer[column as keyof OfferRow],
    ),
  )
  if (Object.keys(changed).length === 0) return false
  const isMoved = changed.status !== undefined
  await changeRow(tx, 'offers', offer, {
    ...changed,
    ...searchColumns({ ...offer, ...changed }),
    status_count: offer.status_count + (isMoved ? 1 : 0),
    updated_at: now,
  })
  if (isMoved) await addStatus(tx, offer)
  return true
}

/** What filters and the databases' full-text indexes compare. */
function searchColumns({ title, description, category, niche }: OfferRow) {
  return {
    category_key: foldedKey(category),
    niche_key: foldedKey(niche),
    search_words: foldedWords(`${title}\n${description ?? ''}`).join(' '),
  }
}

export function offersById(db: Queries | Tx, ids: readonly string[]): Promise<OfferRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db
    .selectFrom('offers')
    .select(OFFER_COLUMNS)
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
}

/** The columns of an offer that can be checked. */
export const AUTHENTIC_COLUMNS = [...OFFER_COLUMNS, 'row_digest'] as const

/** As `offersById`, for terms that are locked. Throws `TamperedRow` for an offer that was changed, and `UnknownKeyError`. */
export async function authenticOffers(db: Queries | Tx, keys: AppKeys, ids: readonly string[]) {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('offers')
    .select(AUTHENTIC_COLUMNS)
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
  for (const row of rows) requireAuthentic(keys, 'offers', row)
  return rows
}

/** The longest attribution window (days) among the live offers of each of these merchants; one without any is missing. */
export async function longestWindows(db: Queries | Tx, merchantIds: readonly string[]) {
  const rows = await db
    .selectFrom('offers')
    .select((eb) => ['merchant_id', eb.fn.max<number>('attribution_window_days').as('days')])
    .where(sql<boolean>`merchant_id ${inList(dialectOf(db), 'uuid', merchantIds)}`)
    .where('status', '=', 'live')
    .groupBy('merchant_id')
    .execute()
  return new Map(rows.map(({ merchant_id, days }) => [merchant_id, days]))
}

export function countOffers(tx: Tx, merchantId: string, status: OfferStatus): Promise<number> {
  return countOf(tx.selectFrom('offers').where('merchant_id', '=', merchantId).where('status', '=', status))
}

export interface EveryOfferFilter {
  merchantId: string | null
  status: OfferStatus | null
  /** Only rates above this one. */
  above: BasisPoints | null
  /** Only offers older than this id. */
  before: string | null
  limit: number
}

/** Every merchant's offers in every status, newest first: for operators. */
export function findEveryOffer(db: Queries, filter: EveryOfferFilter): Promise<OfferRow[]> {
  let query = db.selectFrom('offers').select(OFFER_COLUMNS).orderBy('id', 'desc').limit(filter.limit)
  if (filter.merchantId !== null) query = query.where('merchant_id', '=', filter.merchantId)
  if (filter.status !== null) query = query.where('status', '=', filter.status)
  if (filter.above !== null) query = query.where('commission_rate', '>', filter.above)
  if (filter.before !== null) query = query.where('id', '<', filter.before)
  return query.execute()
}

/** The latest statuses of an offer, newest first. */
export function findStatusChanges(db: Queries, offerId: string, limit: number) {
  return db
    .selectFrom('offer_status_changes')
    .select(['status', 'changed_at'])
    .where('offer_id', '=', offerId)
    .orderBy('sequence', 'desc')
    .limit(limit)
    .execute()
}

/** An offer at a time, epoch ms. */
export interface OfferMoment {
  offer_id: string
  at: number
}

/**
 * The status that each offer had at its time, in the given order; `null` before its creation. Throws `TamperedRow` for an offer, or a row of
 * its history, that was changed, added or deleted, and `UnknownKeyError`.
 */
export async function statusesAt(db: Queries | Tx, keys: AppKeys, moments: readonly OfferMoment[]) {
  const ids = [...new Set(moments.map(({ offer_id }) => offer_id))]
  // First, because histories grow meanwhile.
  const offers = await authenticOffers(db, keys, ids)
  if (offers.length === 0) return moments.map(() => null)
  const rows = await db
    .selectFrom('offer_status_changes')
    .selectAll()
    .where(sql<boolean>`offer_id ${inList(dialectOf(db), 'uuid', ids)}`)
    .orderBy('sequence')
    .execute()
  const histories = Map.groupBy(authentic(keys, 'offer_status_changes', rows), ({ offer_id }) => offer_id)
  for (const { id, status_count } of offers) {
    const sequences = new Set(histories.get(id)?.map(({ sequence }) => sequence))
    for (let sequence = 1; sequence <= status_count; sequence += 1) {
      if (!sequences.has(sequence)) throw new TamperedRow('offer_status_changes', { offer_id: id, sequence })
    }
  }
  return moments.map(
    ({ offer_id, at }) =>
      histories.get(offer_id)?.findLast(({ changed_at }) => changed_at <= at)?.status ?? null,
  )
}
