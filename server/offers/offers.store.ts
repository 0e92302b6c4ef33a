import { type Selectable, sql } from 'kysely'
import type { BasisPoints } from '../../shared/rates.ts'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { entities, LOCK } from '../platform/database/entities.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
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

/** Adds an offer, which is saved before the transaction commits. */
export async function addOffer(tx: Tx, row: OfferRow): Promise<void> {
  const { em, Offer } = await entities(tx)
  em.create(Offer, { ...row, ...searchColumns(row) })
}

/** Locks an offer until the transaction ends; what is assigned to it is saved before the commit. */
export async function lockOffer(
  tx: Tx,
  where: { id: string; merchant_id?: string },
): Promise<OfferRow | null> {
  const { em, Offer } = await entities(tx)
  return em.findOne(Offer, where, LOCK)
}

/** Locks all live offers of a merchant, as `lockOffer` does. */
export async function lockLiveOffers(tx: Tx, merchantId: string): Promise<OfferRow[]> {
  const { em, Offer } = await entities(tx)
  return em.find(Offer, { merchant_id: merchantId, status: 'live' }, { ...LOCK, orderBy: { id: 'asc' } })
}

/** Assigns new values to a locked offer, and the search columns that follow from them. Returns whether a value is new. */
export function assignOffer(offer: OfferRow, change: OfferChange): boolean {
  const changed = Object.entries(change).filter(
    ([column, value]) => value !== undefined && value !== offer[column as keyof OfferRow],
  )
  if (changed.length === 0) return false
  Object.assign(offer, Object.fromEntries(changed))
  Object.assign(offer, searchColumns(offer))
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

export async function countDrafts(tx: Tx, merchantId: string): Promise<number> {
  const { drafts } = await tx
    .selectFrom('offers')
    .select((eb) => eb.fn.countAll<number>().as('drafts'))
    .where('merchant_id', '=', merchantId)
    .where('status', '=', 'draft')
    .executeTakeFirstOrThrow()
  return drafts
}

export async function hasLiveOffer(tx: Tx, merchantId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('offers')
    .select('id')
    .where('merchant_id', '=', merchantId)
    .where('status', '=', 'live')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
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

/** An offer at a time, epoch ms. */
export interface OfferMoment {
  offer_id: string
  at: number
}

const askedMoments = valuesTable<OfferMoment & { place: number }>('asked', {
  place: 'int',
  offer_id: 'uuid',
  at: 'bigint',
})

/** The status that each offer had at its time, in the given order; `null` before its creation. */
export async function statusesAt(
  db: Queries | Tx,
  moments: readonly OfferMoment[],
): Promise<(OfferStatus | null)[]> {
  if (moments.length === 0) return []
  const asked = moments.map((moment, place) => ({ ...moment, place }))
  const found = await sql<{ status: OfferStatus | null }>`
    select (
      select change.status from offer_status_changes as change
      where change.offer_id = asked.offer_id and change.changed_at <= asked.at
      order by change.sequence desc limit 1
    ) as status
    from ${askedMoments(dialectOf(db), asked)}
    order by asked.place`.execute(db)
  return found.rows.map(({ status }) => status)
}
