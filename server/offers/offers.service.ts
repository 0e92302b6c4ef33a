import { z } from 'zod'
import { type BasisPoints, basisPointsToPercent } from '../../shared/rates.ts'
import { idParam } from '../../shared/schemas/common.ts'
import type {
  createOfferInput,
  listOffersInput,
  OfferCategories,
  OfferSort,
  Offer as WireOffer,
} from '../../shared/schemas/offers.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { closeFlag, raiseFlag } from '../flags/flags.service.ts'
import { paidRatesOf, paidRatesSince } from '../pending-orders/paid-rates.service.ts'
import { decodeCursor, encodeCursor, mapPage, type Page, pageOf } from '../platform/api/page.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import { advisoryLock, afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { lockRows, type RowOf } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { merchantHasStore, merchantStoresLock } from '../stores/stores.service.ts'
import { checkQuota, isSuspended, peopleOf, requireVerifiedEmail } from '../users/users.service.ts'
import { countByCategory, listOffers as listRows, type OfferScope } from './offer-list.store.ts'
import { decideOfferMove, type OfferStatus } from './offer-status.rule.ts'
import {
  addOffer,
  assignOffer,
  authenticOffers,
  countOffers,
  type EveryOfferFilter,
  findEveryOffer,
  type OfferChange,
  type OfferRow,
  offersById,
} from './offers.store.ts'
import { flagUnverifiedHost } from './product-host.service.ts'
import { checkProductUrl, withoutTrackingReference } from './product-url.rule.ts'
import { mayChangeLiveRate, rejectionScopeOf, type VettingState, vettingStateOf } from './vetting.rule.ts'

/** The cache of public offers as anonymous callers get them. */
export const PUBLIC_OFFERS = 'offers'
/** The cache of where links lead, by slug. Cleared when an offer's status or product address changes. */
export const LINK_TARGETS = 'slug'
export const DRAFT_QUOTA = {
  most: 500,
  detail: 'At most 500 draft offers per account. Edit a draft or take one live instead of adding another.',
}
const MAX_CATEGORIES = 500

/** An offer as other concepts see it; times in epoch ms, rates in basis points. */
export type OfferRecord = Omit<OfferRow, 'product_ids'> & {
  product_ids: string[] | null
  vetting: VettingState
  /** Why an admin rejected the offer; `null` for a live offer, which anyone can read. */
  vetting_reason: string | null
}

/** The fields that a merchant sets. */
export type OfferFields = Pick<OfferRecord, keyof z.output<typeof createOfferInput>>

/** An offer as callers see it: with its merchant's name, and how many percent of its orders with cash on delivery are paid. */
export type ShownOffer = OfferRecord & {
  merchant: { id: string; display_name: string }
  paid_rate_90d: number | null
}

/** Creates a draft. Refuses with `validation_failed` (an address that is not public) and `quota_exceeded`. */
export async function createOffer(
  platform: Platform,
  merchantId: string,
  fields: OfferFields,
): Promise<ShownOffer> {
  const { product_ids, ...rest } = fields
  const now = platform.clock.now()
  const row = {
    ...rest,
    ...checkedAddresses(platform, fields),
    product_ids: product_ids && JSON.stringify(product_ids),
    id: platform.ids.next(),
    merchant_id: merchantId,
    status: 'draft' as const,
    status_count: 1,
    vetting_verdict: null,
    vetted_rate: null,
    rejection_scope: null,
    vetting_reason: null,
    created_at: now,
    updated_at: now,
  }
  await platform.database.transaction(async (tx) => {
    const count = () => countOffers(tx, merchantId, 'draft')
    await checkQuota(tx, merchantId, { ...DRAFT_QUOTA, count })
    await addOffer(tx, row)
    await flagUnverifiedHost(platform, tx, row, null)
    await updateVettingQueue(platform, tx, row)
  })
  return shownOffer(platform, row)
}

export const RATE_UNVETTED =
  'This commission rate needs an approved vetting. To change the rate before an admin decides, pause the offer.'

/**
 * Edits one of the merchant's offers. Rate, window and product ids apply to later approvals only, everything else immediately.
 * Refuses with `not_found`, `validation_failed` (an address), `conflict` (ended) and `vetting_required` (raising a live offer's rate).
 */
export async function updateOffer(
  platform: Platform,
  merchantId: string,
  offerId: string,
  fields: Partial<OfferFields>,
): Promise<ShownOffer> {
  const { product_ids, ...rest } = fields
  const change: OfferChange = { ...rest, ...checkedAddresses(platform, fields) }
  if (product_ids !== undefined) change.product_ids = product_ids && JSON.stringify(product_ids)
  const row = await platform.database.transaction(async (tx) => {
    const [offer] = await lockRows(tx, 'offers', { id: offerId, merchant_id: merchantId })
    if (!offer) throw offerNotFound()
    if (offer.status === 'ended') throw new Refusal('conflict', 'An ended offer cannot be edited.')
    const rate = fields.commission_rate ?? offer.commission_rate
    if (offer.status === 'live' && !mayChangeLiveRate(offer, rate, platform.config.HIGH_COMMISSION_RATE)) {
      throw new Refusal('vetting_required', RATE_UNVETTED)
    }
    await changeOffer(platform, tx, offer, change)
    return offer
  })
  return shownOffer(platform, row)
}

/**
 * Changes the status of one of the merchant's offers; the present status changes nothing. Refuses with `not_found`,
 * `illegal_transition`, `conflict` (no store), `vetting_required` and `email_not_verified`.
 */
export async function setOfferStatus(
  platform: Platform,
  merchantId: string,
  offerId: string,
  to: OfferStatus,
): Promise<ShownOffer> {
  const { offer, move } = await platform.database.transaction(async (tx) => {
    // No offer goes live while the merchant's last store is removed.
    await advisoryLock(tx, merchantStoresLock(merchantId))
    const [offer] = await lockRows(tx, 'offers', { id: offerId, merchant_id: merchantId })
    if (!offer) throw offerNotFound()
    if (to === 'live' && offer.status !== 'live') await requireVerifiedEmail(platform, tx, merchantId)
    const move = decideOfferMove({
      from: offer.status,
      to,
      merchantHasStore: await merchantHasStore(tx, merchantId),
      vetting: vettingStateOf(offer, platform.config.HIGH_COMMISSION_RATE),
    })
    if (move.kind === 'moved') await changeOffer(platform, tx, offer, { status: to })
    // Committed although the merchant is refused.
    if (move.kind === 'refused' && move.code === 'vetting_required')
      await updateVettingQueue(platform, tx, offer)
    return { offer, move }
  })
  if (move.kind === 'refused') throw new Refusal(move.code, move.detail)
  return shownOffer(platform, offer)
}

/** Pauses all live offers of a merchant, each with an audit entry; returns their number. */
export async function pauseLiveOffers(
  platform: Platform,
  tx: Tx,
  merchantId: string,
  by: { actor: string; reason: string },
): Promise<number> {
  const offers = await lockRows(tx, 'offers', { merchant_id: merchantId, status: 'live' })
  for (const offer of offers) {
    await changeOffer(platform, tx, offer, { status: 'paused' })
    await recordAudit(platform, tx, {
      actor: by.actor,
      action: 'offer.pause',
      subjectType: 'offer',
      subjectId: offer.id,
      reason: by.reason,
      before: { status: 'live' },
      after: { status: 'paused' },
    })
  }
  return offers.length
}

export interface Vetting {
  offerId: string
  /** The admin's user id, or `OPERATOR`. */
  actor: string
  decision: 'approve' | 'reject'
  reason: string | null
  /** The rate that the admin saw, in basis points; another rate is refused. */
  commissionRate?: BasisPoints | undefined
}

/**
 * Records an admin's decision on an offer at its present rate. A rejection pauses a live offer; earlier clicks still earn.
 * Repeating the decision for the same rate changes nothing. Refuses with `not_found`, with `conflict` when the offer's rate is not
 * `commissionRate`, and a repeat with another reason with `already_decided`.
 */
export async function vetOffer(platform: Platform, vetting: Vetting): Promise<ShownOffer> {
  const verdict = vetting.decision === 'approve' ? 'approved' : 'rejected'
  const row = await platform.database.transaction(async (tx) => {
    const [offer] = await lockRows(tx, 'offers', { id: vetting.offerId })
    if (!offer) throw offerNotFound()
    const { commission_rate: rate, status, vetting_verdict, vetted_rate, rejection_scope } = offer
    if (vetting.commissionRate !== undefined && vetting.commissionRate !== rate) {
      throw new Refusal('conflict', `The offer's commission rate is now ${rate / 100} %.`)
    }
    const scope = rejectionScopeOf(rate, platform.config.HIGH_COMMISSION_RATE)
    const decided = {
      vetting_verdict: verdict,
      vetted_rate: rate,
      rejection_scope: verdict === 'rejected' ? scope : null,
      status: verdict === 'rejected' && status === 'live' ? 'paused' : status,
    } as const
    const isRepeat =
      vetting_verdict === verdict &&
      vetted_rate === rate &&
      rejection_scope === decided.rejection_scope &&
      status === decided.status
    if (isRepeat && vetting.reason !== null && vetting.reason !== offer.vetting_reason) {
      throw new Refusal('already_decided', `This offer is already ${verdict}, with another reason.`)
    }
    await closeVettingFlag(platform, tx, offer.id, `The offer was ${verdict} at ${rate / 100} %.`)
    if (isRepeat) return offer
    await changeOffer(platform, tx, offer, { ...decided, vetting_reason: vetting.reason })
    await recordAudit(platform, tx, {
      actor: vetting.actor,
      action: 'offer.vet',
      subjectType: 'offer',
      subjectId: offer.id,
      reason: vetting.reason,
      before: { vetting: vetting_verdict, vetted_rate, status },
      after: { vetting: verdict, vetted_rate: rate, status: decided.status },
    })
    return offer
  })
  return shownOffer(platform, row)
}

/** Changes a locked offer and everything that depends on it: caches, vetting queue, flags. Equal values change nothing. */
async function changeOffer(
  platform: Platform,
  tx: Tx,
  offer: RowOf<'offers'>,
  change: OfferChange,
): Promise<void> {
  const former = { ...offer }
  if (!(await assignOffer(tx, offer, change, platform.clock.now()))) return
  const isChanged = (column: keyof OfferRow) => offer[column] !== former[column]
  if (former.status === 'live' || offer.status === 'live') clearPublicOffers(platform, tx)
  // A draft has no links.
  if (former.status !== 'draft' && (isChanged('status') || isChanged('product_url'))) {
    afterCommit(tx, () => platform.caches.drop(LINK_TARGETS))
  }
  if (isChanged('commission_rate') || isChanged('status')) await updateVettingQueue(platform, tx, offer)
  if (isChanged('product_url') || (isChanged('status') && offer.status === 'live')) {
    await flagUnverifiedHost(platform, tx, offer, former)
  }
}

/** Adds an offer to the admins' queue while its rate needs a decision, and removes it otherwise. */
async function updateVettingQueue(platform: Platform, tx: Tx, offer: OfferRow): Promise<void> {
  if (offer.status === 'ended') return closeVettingFlag(platform, tx, offer.id, 'The offer has ended.')
  if (vettingStateOf(offer, platform.config.HIGH_COMMISSION_RATE) !== 'pending') {
    return closeVettingFlag(platform, tx, offer.id, 'The rate needs no decision.')
  }
  await raiseFlag(platform, tx, {
    kind: 'offer_vetting',
    subjectType: 'offer',
    subjectId: offer.id,
    summary: `An offer at ${offer.commission_rate / 100} % commission waits for vetting.`,
    evidence: {
      title: offer.title,
      merchant_id: offer.merchant_id,
      commission_rate: offer.commission_rate / 100,
      high_commission_rate: platform.config.HIGH_COMMISSION_RATE / 100,
    },
  })
}

async function closeVettingFlag(platform: Platform, tx: Tx, offerId: string, note: string): Promise<void> {
  await closeFlag(platform, tx, { kind: 'offer_vetting', subjectType: 'offer', subjectId: offerId }, note)
}

function clearPublicOffers(platform: Platform, tx: Tx): void {
  afterCommit(tx, () => platform.caches.drop(PUBLIC_OFFERS))
}

/** Call when a merchant's display name changes, which public offers show. */
export async function refreshMerchantName(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  if ((await countOffers(tx, merchantId, 'live')) > 0) clearPublicOffers(platform, tx)
}

/** An offer in any status, for the operator. Refuses with `not_found`. */
export async function getEveryOffer(platform: Platform, offerId: string): Promise<ShownOffer> {
  const [row] = await offersById(platform.database.reader, [offerId])
  if (!row) throw offerNotFound()
  return shownOffer(platform, row)
}

/** A live offer of an active merchant; owners and admins get every offer. Refuses with `not_found`. */
export async function getOffer(
  platform: Platform,
  actor: Actor | null,
  offerId: string,
): Promise<ShownOffer> {
  const { reader } = platform.database
  const [row] = await offersById(reader, [offerId])
  if (!row) throw offerNotFound()
  const privileged = actor?.role === 'admin' || actor?.userId === row.merchant_id
  if (!privileged) {
    const suspended = await isSuspended(reader, [row.merchant_id])
    if (row.status !== 'live' || suspended.size > 0) throw offerNotFound()
  }
  return shownOffer(platform, row)
}

/** As on the wire, but rates in basis points. */
type OfferQuery = z.output<typeof listOffersInput>

const cursorKey = <Sort extends OfferSort>(sort: Sort) =>
  z.tuple([z.literal(sort), z.int().min(0).max(10_000), idParam])

const CURSOR_KEYS = {
  newest: cursorKey('newest'),
  commission_desc: cursorKey('commission_desc'),
  commission_asc: cursorKey('commission_asc'),
}

/**
 * Live offers of active merchants, or with `mine` the caller's own in every status. An offer that stays listed at its rate appears
 * exactly once across pages; one whose rate crosses the cursor of a commission sort can appear twice or not at all. `newest` sorts
 * by creation time. Refuses with `unauthenticated` or `forbidden` when the caller of `mine` is not a merchant, and with
 * `validation_failed` for another list's or sort's cursor and for a status other than live without `mine`.
 */
export async function listOffers(
  platform: Platform,
  actor: Actor | null,
  query: OfferQuery,
): Promise<Page<ShownOffer>> {
  const { reader, dialect } = platform.database
  const cursor = decodeCursor(query.cursor, CURSOR_KEYS[query.sort])
  const rows = await listRows(reader, dialect, {
    scope: scopeOf(actor, query),
    filter: query,
    paidRatesSince: paidRatesSince(platform),
    sort: query.sort,
    after: cursor && { commissionRate: cursor[1], id: cursor[2] },
    limit: query.limit + 1,
  })
  const page = pageOf(rows, query.limit, (last) => encodeCursor([query.sort, last.commission_rate, last.id]))
  const rates = await paidRatesOf(platform, reader, idsIn(page.items))
  return mapPage(page, (row) => shown(platform, row, row.merchant_name, rates))
}

/** What live offers are about, the most used first. */
export function listCategories({ database }: Platform): Promise<OfferCategories['items']> {
  return countByCategory(database.reader, database.dialect, MAX_CATEGORIES)
}

function scopeOf(actor: Actor | null, query: OfferQuery): OfferScope {
  if (query.mine) {
    if (!actor) throw new Refusal('unauthenticated', 'To list your own offers, log in as a merchant.')
    if (actor.role !== 'merchant') throw new Refusal('forbidden', 'Only merchants have offers of their own.')
    return { kind: 'own', merchantId: actor.userId, status: query.status }
  }
  if (query.status === undefined || query.status === 'live') return { kind: 'public' }
  throw new Refusal('validation_failed', 'Only live offers are public.', {
    issues: [{ path: 'status', message: 'must be live unless mine=true' }],
  })
}

export interface EveryOfferQuery extends Omit<EveryOfferFilter, 'above'> {
  vetting: VettingState | null
}

const ROWS_PER_READ = 500

/** Every merchant's offers in every status, newest first: for operators. */
export async function listEveryOffer(platform: Platform, query: EveryOfferQuery): Promise<ShownOffer[]> {
  const { merchantId, status, vetting, limit } = query
  // A vetting state is not stored; only rates above the threshold can be pending or approved.
  const onlyHigh = vetting === 'pending' || vetting === 'approved'
  const above = onlyHigh ? platform.config.HIGH_COMMISSION_RATE : null
  const found: OfferRow[] = []
  for (let { before } = query; found.length < limit; ) {
    const filter = { merchantId, status, above, before, limit: ROWS_PER_READ }
    const rows = await findEveryOffer(platform.database.reader, filter)
    found.push(
      ...rows.filter(
        (row) => vetting === null || vettingStateOf(row, platform.config.HIGH_COMMISSION_RATE) === vetting,
      ),
    )
    if (rows.length < ROWS_PER_READ) break
    before = rows.at(-1)?.id ?? null
  }
  return shownOffers(platform, found.slice(0, limit))
}

/** Offers by id, for other concepts; unknown ids are missing. */
export async function offerRecords(platform: Platform, db: Queries | Tx, offerIds: readonly string[]) {
  const rows = await offersById(db, [...new Set(offerIds)])
  return new Map(rows.map((row) => [row.id, recordOf(platform, row)]))
}

/** An offer whose terms are to be locked. Refuses with `not_found`; throws `TamperedRow` when it was changed, and `UnknownKeyError`. */
export async function authenticOffer(platform: Platform, db: Queries | Tx, offerId: string) {
  const [row] = await authenticOffers(db, platform.keys, [offerId])
  if (!row) throw offerNotFound()
  return recordOf(platform, row)
}

/** Titles by offer id. */
export async function offerTitles(db: Queries, offerIds: readonly string[]): Promise<Map<string, string>> {
  return new Map((await offersById(db, [...new Set(offerIds)])).map((row) => [row.id, row.title]))
}

async function shownOffer(platform: Platform, row: OfferRow): Promise<ShownOffer> {
  const [shown] = await shownOffers(platform, [row])
  return shown as ShownOffer
}

async function shownOffers(platform: Platform, rows: readonly OfferRow[]): Promise<ShownOffer[]> {
  const merchantIds = rows.map((row) => row.merchant_id)
  const people = await peopleOf(platform.database.reader, merchantIds)
  const rates = await paidRatesOf(platform, platform.database.reader, idsIn(rows))
  return rows.map((row) => shown(platform, row, people.get(row.merchant_id)?.display_name ?? '', rates))
}

/** A draft has no orders. */
function idsIn(rows: readonly OfferRow[]): string[] {
  return rows.flatMap(({ id, status }) => (status === 'draft' ? [] : id))
}

function shown(
  platform: Platform,
  row: OfferRow,
  name: string,
  rates: ReadonlyMap<string, number | null>,
): ShownOffer {
  const merchant = { id: row.merchant_id, display_name: name }
  return { ...recordOf(platform, row), merchant, paid_rate_90d: rates.get(row.id) ?? null }
}

function recordOf({ config }: Platform, row: OfferRow): OfferRecord {
  const vetting = vettingStateOf(row, config.HIGH_COMMISSION_RATE)
  return {
    ...row,
    product_ids: row.product_ids === null ? null : JSON.parse(row.product_ids),
    vetting,
    vetting_reason: vetting === 'rejected' && row.status !== 'live' ? row.vetting_reason : null,
  }
}

/** The given addresses, normalized and without a tracking reference. Refuses with `validation_failed`. */
function checkedAddresses({ config }: Platform, fields: Partial<OfferFields>) {
  const checked: Pick<OfferChange, 'product_url' | 'image_url'> = {}
  const issues: { path: string; message: string }[] = []
  for (const path of ['product_url', 'image_url'] as const) {
    const text = fields[path]
    if (text === undefined || text === null) continue
    const check = checkProductUrl(text)
    if (check.ok) checked[path] = withoutTrackingReference(check.url, config.TRACKING_PARAMETER)
    else issues.push({ path, message: check.message })
  }
  if (issues.length === 0) return checked
  throw invalidFields(issues)
}

/** An offer as every procedure that returns one sends it. */
export function wireOffer(offer: ShownOffer): WireOffer {
  return {
    id: offer.id,
    merchant: offer.merchant,
    title: offer.title,
    description: offer.description,
    product_url: offer.product_url,
    image_url: offer.image_url,
    category: offer.category,
    niche: offer.niche,
    commission_rate: basisPointsToPercent(offer.commission_rate),
    status: offer.status,
    vetting: offer.vetting,
    vetting_reason: offer.vetting_reason,
    attribution_window_days: offer.attribution_window_days,
    product_ids: offer.product_ids,
    paid_rate_90d: offer.paid_rate_90d,
    created_at: isoTime(offer.created_at),
    updated_at: isoTime(offer.updated_at),
  }
}

export function offerNotFound(): Refusal {
  return new Refusal('not_found', 'Offer not found.')
}

export {
  AUTHENTIC_COLUMNS,
  findStatusChanges as offerStatusChanges,
  longestWindows,
  statusesAt as offerStatusesAt,
} from './offers.store.ts'
