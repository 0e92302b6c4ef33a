import { idParam } from '../../shared/schemas/common.ts'
import { createLink, type LinkRecord, linksOfApplications } from '../links/links.service.ts'
import { type OfferRecord, offerNotFound, offerRecords } from '../offers/offers.service.ts'
import { checkProductUrl } from '../offers/product-url.rule.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/api/page.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota, displayNamesOf, isSuspended } from '../users/users.service.ts'
import { type ApplicationStatus, decideApplication, mayApply } from './application.rule.ts'
import {
  type ApplicationRow,
  type ApplicationScope,
  countApplicationsSince,
  decidePending,
  insertApplication,
  listApplications as listRows,
  lockApplication,
  statusesOf,
} from './applications.store.ts'

export const MAX_APPLICATIONS_PER_DAY = 100
const DAY_MS = 24 * 60 * 60 * 1000

/** An application as callers are shown it; times in epoch ms. */
export interface ShownApplication extends ApplicationRow {
  creator: { id: string; display_name: string }
  /** Made by the approval, with the terms that it locked. */
  link: LinkRecord | null
}

interface ListQuery {
  status?: ApplicationStatus | undefined
  limit: number
  cursor?: string | undefined
}

/**
 * A creator's application to a live offer. Refuses with `not_found` (also for a draft and for a suspended merchant's
 * offer), `offer_not_live`, `already_applied`, `quota_exceeded` and `validation_failed` (the address).
 */
export async function applyToOffer(
  platform: Platform,
  creatorId: string,
  offerId: string,
  input: { message: string | null; promotion_url: string | null },
): Promise<ShownApplication> {
  const promotionUrl = input.promotion_url === null ? null : checkedAddress(input.promotion_url)
  const row = await platform.database.transaction(async (tx) => {
    const offer = await offerOf(platform, tx, offerId)
    const decision = mayApply({
      offerStatus: offer.status,
      existing: await statusesOf(tx, offerId, creatorId),
      merchantSuspended: (await isSuspended(tx, [offer.merchant_id])).size > 0,
    })
    if (decision.kind === 'invisible') throw offerNotFound()
    if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
    const now = platform.clock.now()
    await checkQuota(tx, creatorId, {
      most: MAX_APPLICATIONS_PER_DAY,
      count: () => countApplicationsSince(tx, creatorId, now - DAY_MS),
      detail: `At most ${MAX_APPLICATIONS_PER_DAY} applications within 24 hours. Apply to this offer later.`,
    })
    const application: ApplicationRow = {
      id: platform.ids.next(),
      offer_id: offerId,
      merchant_id: offer.merchant_id,
      creator_id: creatorId,
      status: 'pending',
      message: input.message,
      promotion_url: promotionUrl,
      decision_reason: null,
      decided_at: null,
      created_at: now,
    }
    if (await insertApplication(tx, application)) return application
    throw new Refusal('already_applied', 'Your application to this offer is pending or approved already.')
  })
  return shownApplication(platform, row)
}

/**
 * A merchant's decision. The same one again changes nothing. An approval makes the affiliate link and locks the offer's rate,
 * window and product ids of this moment, all in one transaction. Refuses with `not_found`, `already_decided`,
 * `offer_not_live` and `vetting_required`.
 */
export async function decideOnApplication(
  platform: Platform,
  merchantId: string,
  applicationId: string,
  answer: { decision: 'approve' | 'reject'; reason: string | null },
): Promise<ShownApplication> {
  const row = await platform.database.transaction(async (tx) => {
    const application = await lockApplication(tx, merchantId, applicationId)
    if (!application) throw new Refusal('not_found', 'There is no such application.')
    const offer = await offerOf(platform, tx, application.offer_id)
    const decision = decideApplication({
      status: application.status,
      decision: answer.decision,
      offerStatus: offer.status,
      vetting: offer.vetting,
    })
    if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
    if (decision.kind === 'unchanged') return application
    const decided = await decidePending(tx, applicationId, {
      status: decision.kind === 'approve' ? 'approved' : 'rejected',
      decision_reason: answer.reason,
      decided_at: platform.clock.now(),
    })
    if (!decided) throw new Error(`application ${applicationId} was decided although it was locked`)
    if (decided.status === 'approved') await makeLink(platform, tx, decided, offer)
    return decided
  })
  return shownApplication(platform, row)
}

/** The applications to one of the merchant's offers, newest first. Refuses with `not_found` and `validation_failed` (cursor). */
export async function listOfferApplications(
  platform: Platform,
  merchantId: string,
  offerId: string,
  query: ListQuery,
): Promise<Page<ShownApplication>> {
  const offer = await offerOf(platform, platform.database.reader, offerId)
  if (offer.merchant_id !== merchantId) throw offerNotFound()
  return listInScope(platform, { merchantId, offerId }, query)
}

/** A creator's own applications, or those to all of a merchant's offers, newest first. */
export function listApplications(
  platform: Platform,
  actor: Actor,
  query: ListQuery,
): Promise<Page<ShownApplication>> {
  const scope = actor.role === 'creator' ? { creatorId: actor.userId } : { merchantId: actor.userId }
  return listInScope(platform, scope, query)
}

async function listInScope(
  platform: Platform,
  scope: ApplicationScope,
  query: ListQuery,
): Promise<Page<ShownApplication>> {
  const after = decodeCursor(query.cursor, idParam)
  const rows = await listRows(platform.database.reader, scope, query.status, after, query.limit + 1)
  const page = pageOf(rows, query.limit, (last) => encodeCursor(last.id))
  return { ...page, items: await shownApplications(platform, page.items) }
}

async function offerOf(platform: Platform, db: Queries | Tx, offerId: string): Promise<OfferRecord> {
  const offer = (await offerRecords(platform, db, [offerId])).get(offerId)
  if (!offer) throw offerNotFound()
  return offer
}

function makeLink(
  platform: Platform,
  tx: Tx,
  application: ApplicationRow,
  offer: OfferRecord,
): Promise<LinkRecord> {
  return createLink(platform, tx, {
    applicationId: application.id,
    offerId: offer.id,
    merchantId: offer.merchant_id,
    creatorId: application.creator_id,
    commissionRate: offer.commission_rate,
    attributionWindowDays: offer.attribution_window_days,
    productIds: offer.product_ids,
  })
}

async function shownApplication(platform: Platform, row: ApplicationRow): Promise<ShownApplication> {
  const [shown] = await shownApplications(platform, [row])
  if (!shown) throw new Error('one row gives one application')
  return shown
}

/** Applications with what callers are shown beside them, in the order given. */
export async function shownApplications(
  platform: Platform,
  rows: readonly ApplicationRow[],
): Promise<ShownApplication[]> {
  const { reader } = platform.database
  const names = await displayNamesOf(reader, [...new Set(rows.map((row) => row.creator_id))])
  const approved = rows.filter((row) => row.status === 'approved').map((row) => row.id)
  const links = await linksOfApplications(reader, approved)
  return rows.map((row) => ({
    ...row,
    creator: { id: row.creator_id, display_name: names.get(row.creator_id) ?? '' },
    link: links.get(row.id) ?? null,
  }))
}

function checkedAddress(text: string): string {
  const check = checkProductUrl(text)
  if (check.ok) return check.url
  throw invalidFields([{ path: 'promotion_url', message: check.message }])
}
