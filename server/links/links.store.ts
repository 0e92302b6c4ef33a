import type { Selectable } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { requireAuthentic } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'

export type LinkRow = Selectable<Schema['affiliate_links']>

export function linksById(db: Queries | Tx, ids: readonly string[]): Promise<LinkRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db.selectFrom('affiliate_links').selectAll().where('id', 'in', ids).execute()
}

export function linksByApplication(db: Queries | Tx, applicationIds: readonly string[]): Promise<LinkRow[]> {
  if (applicationIds.length === 0) return Promise.resolve([])
  return db.selectFrom('affiliate_links').selectAll().where('application_id', 'in', applicationIds).execute()
}

/** Throws `TamperedRow` and `UnknownKeyError`. */
export async function linkBySlug(
  db: Queries | Tx,
  keys: AppKeys,
  slug: string,
): Promise<LinkRow | undefined> {
  const row = await db.selectFrom('affiliate_links').selectAll().where('slug', '=', slug).executeTakeFirst()
  if (row) requireAuthentic(keys, 'affiliate_links', row)
  return row
}

/** Whose links a list shows; all without any. */
export interface LinkScope {
  creatorId?: string | undefined
  merchantId?: string | undefined
  offerId?: string | undefined
}

/** Links in the scope, newest first, after the id `after`. */
export function linksOf(
  db: Queries,
  { creatorId, merchantId, offerId }: LinkScope,
  after: string | null,
  limit: number,
): Promise<LinkRow[]> {
  let query = db.selectFrom('affiliate_links').selectAll()
  if (creatorId !== undefined) query = query.where('creator_id', '=', creatorId)
  if (merchantId !== undefined) query = query.where('merchant_id', '=', merchantId)
  if (offerId !== undefined) query = query.where('offer_id', '=', offerId)
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** The facts for a redirect, in one query. Throws `TamperedRow` and `UnknownKeyError`. */
export async function targetOfSlug(db: Queries, keys: AppKeys, slug: string) {
  const row = await db
    .selectFrom('affiliate_links as link')
    .innerJoin('offers as offer', 'offer.id', 'link.offer_id')
    .innerJoin('users as merchant', 'merchant.id', 'link.merchant_id')
    .innerJoin('users as creator', 'creator.id', 'link.creator_id')
    .selectAll('link')
    .select([
      'offer.product_url',
      'offer.status',
      'merchant.suspended_at as merchant_suspended_at',
      'creator.suspended_at as creator_suspended_at',
    ])
    .where('link.slug', '=', slug)
    .executeTakeFirst()
  if (!row) return undefined
  const { product_url, status, merchant_suspended_at, creator_suspended_at, ...link } = row
  requireAuthentic(keys, 'affiliate_links', link)
  return { link_id: link.id, product_url, status, merchant_suspended_at, creator_suspended_at }
}
