import { type Selectable, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
import type { Schema } from '../platform/database/schema.ts'

/** The columns that hold something of their own; the folded ones follow from them. */
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
/** What is `undefined` stays as it is. */
export type OfferChange = { [Column in keyof OfferRow]?: OfferRow[Column] | undefined }

export async function insertOffer(tx: Tx, row: OfferRow): Promise<void> {
  await tx
    .insertInto('offers')
    .values({ ...row, ...foldedTexts(row) })
    .execute()
}

export function offersById(db: Queries | Tx, ids: readonly string[]): Promise<OfferRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db
    .selectFrom('offers')
    .select(OFFER_COLUMNS)
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
}

/** The live offers of a merchant, in the order in which they can be locked. */
export async function liveOfferIds(tx: Tx, merchantId: string): Promise<string[]> {
  const rows = await tx
    .selectFrom('offers')
    .select('id')
    .where('merchant_id', '=', merchantId)
    .where('status', '=', 'live')
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/**
 * An offer (of this merchant only, unless `null`), held until the transaction ends: a write that changes nothing is
 * the row lock that SQLite and PostgreSQL have in common.
 */
export function lockOffer(tx: Tx, merchantId: string | null, id: string): Promise<OfferRow | undefined> {
  let query = tx
    .updateTable('offers')
    .set((eb) => ({ updated_at: eb.ref('updated_at') }))
    .where('id', '=', id)
  if (merchantId !== null) query = query.where('merchant_id', '=', merchantId)
  return query.returning(OFFER_COLUMNS).executeTakeFirst()
}

/** Changes an offer that still has the status of `offer`, its row as it was read; whether it had. */
export async function changeOffer(tx: Tx, offer: OfferRow, change: OfferChange): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('offers')
    .set({ ...change, ...refoldedTexts(offer, change) })
    .where('id', '=', offer.id)
    .where('status', '=', offer.status)
    .executeTakeFirst()
  return numUpdatedRows === 1n
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

type OfferTexts = Pick<OfferRow, 'title' | 'description' | 'category' | 'niche'>

/** The columns by which texts are found; the databases' own full-text indexes follow `search_words`. */
function foldedTexts({ title, description, category, niche }: OfferTexts) {
  return {
    category_key: foldedKey(category),
    niche_key: foldedKey(niche),
    search_words: foldedWords(`${title}\n${description ?? ''}`).join(' '),
  }
}

/** The same after a change, if it is one of texts. */
function refoldedTexts(offer: OfferTexts, change: OfferChange) {
  const { title, description, category, niche } = change
  if ([title, description, category, niche].every((text) => text === undefined)) return {}
  return foldedTexts({
    title: title ?? offer.title,
    description: description === undefined ? offer.description : description,
    category: category ?? offer.category,
    niche: niche ?? offer.niche,
  })
}
