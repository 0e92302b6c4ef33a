import { DAY_MS } from '../../shared/durations.ts'
import { type BasisPoints, basisPointsToPercent } from '../../shared/rates.ts'
import type { Application as WireApplication } from '../../shared/schemas/applications.ts'
import { changeCoupon, couponCodesOf } from '../links/coupons.service.ts'
import { createLink, type LinkRecord, linksOfApplications, linkUrl } from '../links/links.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { authenticOffer, offerNotFound, offerTitles } from '../offers/offers.service.ts'
import { checkProductUrl } from '../offers/product-url.rule.ts'
import { vettingStateOf } from '../offers/vetting.rule.ts'
import { type Page, pageById } from '../platform/api/page.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import {
  countRows,
  type KeysetScan,
  pageItems,
  type ScanPage,
  type ScanScope,
} from '../platform/database/keyset-scan.ts'
import { changeRow, insertRow, lockRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import {
  checkQuota,
  isSuspended,
  lockAccount,
  peopleOf,
  requireVerifiedEmail,
} from '../users/users.service.ts'
import {
  type AnswerPart,
  type ApplicationStatus,
  decideApplication,
  decideWithdrawal,
  mayApply,
} from './application.rule.ts'
import {
  type ApplicationRow,
  type ApplicationScope,
  applicationsIn,
  countApplicationsSince,
  statusesOf,
} from './applications.store.ts'

export const APPLICATION_QUOTA = {
  most: 100,
  detail: 'At most 100 applications within 24 hours. Apply to this offer later.',
}

/** An application as callers see it; times in epoch ms. */
export interface ShownApplication extends ApplicationRow {
  offer: { id: string; title: string }
  creator: { id: string; display_name: string }
  /** The link that the approval created, with its locked terms. */
  link: (LinkRecord & { couponCode: string | null }) | null
}

interface ListQuery {
  status?: ApplicationStatus | undefined
  limit: number
  cursor?: string | undefined
}

/**
 * Applies to a live offer. Refuses with `not_found` (also for a draft and a suspended merchant's offer), `offer_not_live`,
 * `already_applied`, `quota_exceeded`, `email_not_verified` and `validation_failed` (the address).
 */
export async function applyToOffer(
  platform: Platform,
  creatorId: string,
  offerId: string,
  input: { message: string | null; promotion_url: string | null },
): Promise<ShownApplication> {
  const promotionUrl = input.promotion_url === null ? null : checkedAddress(input.promotion_url)
  const row = await platform.database.transaction(async (tx) => {
    // A creator's applications run one after the other, so that none is missed here.
    await lockAccount(tx, creatorId)
    await requireVerifiedEmail(platform, tx, creatorId)
    const offer = await authenticOffer(platform, tx, offerId)
    const decision = mayApply({
      offerStatus: offer.status,
      existing: await statusesOf(tx, offerId, creatorId),
      merchantSuspended: (await isSuspended(tx, [offer.merchant_id])).size > 0,
    })
    if (decision.kind === 'invisible') throw offerNotFound()
    if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
    const now = platform.clock.now()
    const count = () => countApplicationsSince(tx, creatorId, now - DAY_MS)
    await checkQuota(tx, creatorId, { ...APPLICATION_QUOTA, count })
    const application = await insertRow(tx, 'applications', {
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
    })
    await publishApplication(platform, tx, application, 'application.created')
    return application
  })
  return shownApplication(platform, row)
}

/** A merchant's answer to an application. What is left out, or `null`, is not compared with an earlier answer. */
interface Answer {
  decision: 'approve' | 'reject'
  reason: string | null
  coupon_code?: string | null
  /** A rate for this creator only, in place of the offer's. */
  commission_rate?: BasisPoints | undefined
}

/**
 * Records a merchant's decision; repeating it changes nothing. An approval creates the affiliate link, which locks the rate (the offer's
 * present one unless the answer has another), window and product ids, and gives it the coupon code, in the same transaction. Refuses
 * with `not_found`, `already_decided`, `offer_not_live`, `vetting_required`, `coupon_taken`, `quota_exceeded` and `validation_failed` (a
 * code or rate with a rejection).
 */
export async function decideOnApplication(
  platform: Platform,
  merchantId: string,
  applicationId: string,
  answer: Answer,
): Promise<ShownApplication> {
  const code = answer.coupon_code ?? null
  if (answer.decision === 'reject') {
    const given = { coupon_code: code, commission_rate: answer.commission_rate ?? null }
    const paths = Object.entries(given).flatMap(([path, value]) => (value === null ? [] : path))
    if (paths.length > 0)
      throw invalidFields(paths.map((path) => ({ path, message: 'is for approvals only' })))
  }
  const row = await platform.database.transaction(async (tx) => {
    const key = { id: applicationId, merchant_id: merchantId }
    const [application] = await lockRows(tx, 'applications', key)
    if (!application) throw new Refusal('not_found', 'Application not found.')
    const offer = await authenticOffer(platform, tx, application.offer_id)
    const commission_rate = answer.commission_rate ?? offer.commission_rate
    const individualRate = commission_rate !== offer.commission_rate
    const decision = decideApplication({
      status: application.status,
      decision: answer.decision,
      offerStatus: offer.status,
      vetting: vettingStateOf({ ...offer, commission_rate }, platform.config.HIGH_COMMISSION_RATE),
      individualRate,
      differsIn: await differenceFrom(tx, application, answer),
    })
    if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
    if (decision.kind === 'unchanged') return application
    await changeRow(tx, 'applications', application, {
      status: decision.kind === 'approve' ? 'approved' : 'rejected',
      decision_reason: answer.reason,
      decided_at: platform.clock.now(),
    })
    if (decision.kind === 'approve') {
      const link = await createLink(platform, tx, {
        application_id: applicationId,
        offer_id: offer.id,
        merchant_id: merchantId,
        creator_id: application.creator_id,
        commission_rate,
        offer_rate: individualRate ? offer.commission_rate : null,
        attribution_window_days: offer.attribution_window_days,
        product_ids: offer.product_ids,
      })
      if (code !== null) await changeCoupon(platform, tx, link, { actor: merchantId, code })
    }
    await publishApplication(platform, tx, application, 'application.decided')
    return application
  })
  return shownApplication(platform, row)
}

/** What an answer gives otherwise than a decided application has it. */
async function differenceFrom(
  tx: Tx,
  application: ApplicationRow,
  { reason, coupon_code: code, commission_rate: rate }: Answer,
): Promise<AnswerPart | null> {
  if (application.status === 'pending') return null
  if (reason !== null && reason !== application.decision_reason) return 'reason'
  if (!code && rate === undefined) return null
  const link = (await linksOfApplications(tx, [application.id])).get(application.id)
  if (rate !== undefined && rate !== link?.commission_rate) return 'commission rate'
  if (!code) return null
  return code === (link && (await couponCodesOf(tx, [link.id])).get(link.id)) ? null : 'coupon code'
}

/** Withdraws a creator's pending application; again changes nothing. Refuses with `not_found` and `already_decided`. */
export function withdrawApplication(
  platform: Platform,
  creatorId: string,
  applicationId: string,
): Promise<void> {
  return platform.database.transaction(async (tx) => {
    const [application] = await lockRows(tx, 'applications', { id: applicationId, creator_id: creatorId })
    if (!application) throw new Refusal('not_found', 'Application not found.')
    const withdrawal = decideWithdrawal(application.status)
    if (withdrawal.kind === 'refused') throw new Refusal(withdrawal.code, withdrawal.detail)
    if (withdrawal.kind === 'unchanged') return
    const change = { status: 'withdrawn', decided_at: platform.clock.now() } as const
    await changeRow(tx, 'applications', application, change)
    await publishApplication(platform, tx, application, 'application.withdrawn')
  })
}

/** The applications to one of the merchant's offers, newest first. Refuses with `not_found` and `validation_failed` (cursor). */
export async function listOfferApplications(
  platform: Platform,
  merchantId: string,
  offerId: string,
  query: ListQuery,
): Promise<Page<ShownApplication>> {
  const offer = await authenticOffer(platform, platform.database.reader, offerId)
  if (offer.merchant_id !== merchantId) throw offerNotFound()
  return listApplications(platform, { merchantId, offerId }, query)
}

/** The applications in a scope, newest first. Refuses another list's cursor with `validation_failed`. */
export async function listApplications(
  platform: Platform,
  scope: ApplicationScope,
  query: ListQuery,
): Promise<Page<ShownApplication>> {
  const { reader } = platform.database
  const { status } = query
  const page = await pageById(query, (request) =>
    applicationsIn(reader, scope, { status, ...request }).execute(),
  )
  return { ...page, items: await shownApplications(page.items, reader) }
}

/** Tells the merchant of a new or withdrawn application, and the creator of a decision. */
async function publishApplication(
  platform: Platform,
  tx: Tx,
  row: ApplicationRow,
  type: 'application.created' | 'application.withdrawn' | 'application.decided',
): Promise<void> {
  const accountId = type === 'application.decided' ? row.creator_id : row.merchant_id
  const data = wireApplication(platform, await shownApplication(platform, row, tx))
  await publishEvents(platform, tx, [{ type, accountId, subjectId: row.id, data }])
}

async function shownApplication(
  platform: Platform,
  row: ApplicationRow,
  db: Queries = platform.database.reader,
): Promise<ShownApplication> {
  const [shown] = await shownApplications([row], db)
  return shown as ShownApplication
}

/** Adds titles of offers, creators' names and links, in the given order. */
async function shownApplications(rows: readonly ApplicationRow[], db: Queries): Promise<ShownApplication[]> {
  const people = await peopleOf(
    db,
    rows.map((row) => row.creator_id),
  )
  const titles = await offerTitles(
    db,
    rows.map((row) => row.offer_id),
  )
  const approved = rows.filter((row) => row.status === 'approved').map((row) => row.id)
  const links = await linksOfApplications(db, approved)
  const codes = await couponCodesOf(
    db,
    [...links.values()].map((link) => link.id),
  )
  return rows.map((row) => {
    const link = links.get(row.id)
    return {
      ...row,
      offer: { id: row.offer_id, title: titles.get(row.offer_id) ?? '' },
      creator: { id: row.creator_id, display_name: people.get(row.creator_id)?.display_name ?? '' },
      link: link ? { ...link, couponCode: codes.get(link.id) ?? null } : null,
    }
  })
}

function checkedAddress(text: string): string {
  const check = checkProductUrl(text)
  if (check.ok) return check.url
  throw invalidFields([{ path: 'promotion_url', message: check.message }])
}

/** A creator's own applications, those to a merchant's offers, or all, for exports. */
export function scanApplications(platform: Platform, scope: ScanScope): KeysetScan<WireApplication> {
  const db = platform.database.reader
  const rowsOf = ({ below, size }: ScanPage) =>
    applicationsIn(db, scope === 'all' ? {} : scope, { before: below, limit: size })
  return {
    count: (step) => countRows(db, step, rowsOf(step)),
    async read(step) {
      const rows = await rowsOf(step).execute()
      return pageItems(step, await shownApplications(rows, db), (row) => wireApplication(platform, row))
    },
  }
}

/** An application as its creator and its merchant see it. */
export function wireApplication(platform: Platform, row: ShownApplication): WireApplication {
  return {
    id: row.id,
    offer_id: row.offer_id,
    offer: row.offer,
    creator: row.creator,
    status: row.status,
    message: row.message,
    promotion_url: row.promotion_url,
    locked_commission_rate: row.link && basisPointsToPercent(row.link.commission_rate),
    affiliate_link: row.link && {
      slug: row.link.slug,
      url: linkUrl(platform, row.link.slug),
      coupon_code: row.link.couponCode,
      ended_at: row.link.ended_at === null ? null : isoTime(row.link.ended_at),
    },
    decision_reason: row.decision_reason,
    decided_at: row.decided_at === null ? null : isoTime(row.decided_at),
    created_at: isoTime(row.created_at),
  }
}
