import { type Selectable, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { joinedRow, type RowOf, requireAuthentic } from '../platform/database/protected-rows.ts'
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
export async function linkBySlug(db: Queries | Tx, keys: AppKeys, slug: string) {
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

interface TargetRow extends LinkRow {
  merchant_suspended_at: number | null
  creator_suspended_at: number | null
}

/** The facts for a redirect, in one query, with these columns of the offer, which its digest covers. Throws `TamperedRow` and `UnknownKeyError`. */
export async function targetOfSlug(
  db: Queries,
  keys: AppKeys,
  slug: string,
  offerColumns: readonly (keyof RowOf<'offers'>)[],
) {
  const joined = joinedRow<RowOf<'offers'>>('offer', offerColumns)
  const { rows } = await sql<TargetRow>`
    select link.*, ${joined.columns}, merchant.suspended_at as merchant_suspended_at,
      creator.suspended_at as creator_suspended_at
    from affiliate_links as link
    join offers as offer on offer.id = link.offer_id
    join users as merchant on merchant.id = link.merchant_id
    join users as creator on creator.id = link.creator_id
    where link.slug = ${slug}`.execute(db)
  if (!rows[0]) return undefined
  const { row: offer, rest } = joined.split(rows[0])
  const { merchant_suspended_at, creator_suspended_at, ...link } = rest
  requireAuthentic(keys, 'affiliate_links', link)
  requireAuthentic(keys, 'offers', offer)
  const { product_url, status } = offer
  const { id: link_id, ended_at } = link
  return { link_id, ended_at, product_url, status, merchant_suspended_at, creator_suspended_at }
}
