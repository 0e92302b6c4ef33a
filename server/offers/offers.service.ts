import { z } from 'zod'
import type { BasisPoints } from '../../shared/rates.ts'
import { idParam } from '../../shared/schemas/common.ts'
import type { OfferSort } from '../../shared/schemas/offers.ts'
import { askForVetting, settleVetting } from '../moderation/vetting-queue.service.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/api/page.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { advisoryLock, afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { merchantHasStore, merchantStoresLock } from '../stores/stores.service.ts'
import { displayNamesOf, isSuspended } from '../users/users.service.ts'
import { checkDraftQuota } from './draft-quota.service.ts'
import { KeptOffers } from './kept-offers.ts'
import {
  listPlaces,
  listOffers as listRows,
  type OfferFilter,
  type OfferListing,
  type OfferScope,
} from './offer-catalogue.store.ts'
import { decideOfferMove, type OfferStatus } from './offer-status.rule.ts'
import {
  changeOffer,
  insertOffer,
  lockOffer,
  type OfferChange,
  type OfferRow,
  offersById,
} from './offers.store.ts'
import { flagUnverifiedHost } from './product-host.service.ts'
import { checkProductUrl } from './product-url.rule.ts'
import { clearPublicOffers } from './public-offers.service.ts'
import { mayRaiseLiveOffer, type VettingDecision, type VettingState, vettingStateOf } from './vetting.rule.ts'

/** What a merchant defines of an offer. Rates in basis points. */
export interface OfferFields {
  title: string
  description: string | null
  product_url: string
  image_url: string | null
  category: string
  niche: string
  commission_rate: BasisPoints
  attribution_window_days: number
  product_ids: string[] | null
}

/** An offer as other parts of the service see it; times in epoch ms. */
export interface OfferRecord extends OfferFields {
  id: string
  merchant_id: string
  status: OfferStatus
  vetting: VettingState
  /** Why an admin rejected the offer. Only its owner and admins see offers that are not live, so live ones have none. */
  vetting_reason: string | null
  created_at: number
  updated_at: number
}

/** With its merchant's name, as callers are shown it. */
export interface ShownOffer extends OfferRecord {
  merchant: { id: string; display_name: string }
}

export interface OfferQuery extends OfferFilter {
  sort: OfferSort
  /** Own offers in every status; the caller must be a merchant. */
  mine: boolean
  status?: OfferStatus | undefined
  limit: number
  cursor?: string | undefined
}

/** Makes a draft. Refuses with `validation_failed` (an address that visitors must not be sent to) and `quota_exceeded`. */
export async function createOffer(
  platform: Platform,
  merchantId: string,
  fields: OfferFields,
): Promise<ShownOffer> {
  const { product_ids, ...rest } = fields
  const now = platform.clock.now()
  const row: OfferRow = {
    ...rest,
    ...checkedAddresses(fields),
    product_ids: product_ids && JSON.stringify(product_ids),
    id: platform.ids.next(),
    merchant_id: merchantId,
    status: 'draft',
    vetting_verdict: null,
    vetted_rate: null,
    rejection_scope: null,
    vetting_reason: null,
    created_at: now,
    updated_at: now,
  }
  await platform.database.transaction(async (tx) => {
    await checkDraftQuota(tx, merchantId)
    await insertOffer(tx, row)
    await flagUnverifiedHost(platform, tx, row, null)
    await followVetting(platform, tx, row)
  })
  return shownOffer(platform, row)
}

/**
 * Edits an own offer. Rate, window and product ids apply to later approvals only, the rest at once. Refuses with
 * `not_found`, `validation_failed` (an address), `conflict` (ended) and `vetting_required` (a live offer's raise).
 */
export async function updateOffer(
  platform: Platform,
  merchantId: string,
  offerId: string,
  fields: Partial<OfferFields>,
): Promise<ShownOffer> {
  const { product_ids, ...rest } = fields
  const change: OfferChange = { ...rest, ...checkedAddresses(fields) }
  if (product_ids !== undefined) change.product_ids = product_ids && JSON.stringify(product_ids)
  const row = await platform.database.transaction(async (tx) => {
    const offer = await lockOffer(tx, merchantId, offerId)
    if (!offer) throw noSuchOffer()
    if (offer.status === 'ended') throw new Refusal('conflict', 'An ended offer cannot be edited.')
    refuseUnvettedRaise(platform, offer, fields.commission_rate)
    return applyChange(platform, tx, offer, change)
  })
  return shownOffer(platform, row)
}

/**
 * Moves an own offer to another status; the one it has already changes nothing. Refuses with `not_found`,
 * `illegal_transition`, `conflict` (no store) and `vetting_required`.
 */
export async function setOfferStatus(
  platform: Platform,
  merchantId: string,
  offerId: string,
  to: OfferStatus,
): Promise<ShownOffer> {
  const row = await platform.database.transaction(async (tx) => {
    // No offer goes live while the merchant's last store is removed.
    await advisoryLock(tx, merchantStoresLock(merchantId))
    const offer = await lockOffer(tx, merchantId, offerId)
    if (!offer) throw noSuchOffer()
    const move = decideOfferMove({
      from: offer.status,
      to,
      merchantHasStore: await merchantHasStore(tx, merchantId),
      vetting: vettingOf(platform, offer),
    })
    if (move.kind === 'unchanged') return offer
    if (move.kind === 'moved') return applyChange(platform, tx, offer, { status: move.to })
    // The refusal must not take back that the offer now waits for its vetting.
    if (move.code === 'vetting_required') await followVetting(platform, tx, offer)
    return move
  })
  if ('kind' in row) throw new Refusal(row.code, row.detail)
  return shownOffer(platform, row)
}

/** An offer that the caller may see: live ones of active merchants, one's own, every one for admins; else `not_found`. */
export async function getOffer(
  platform: Platform,
  actor: Actor | null,
  offerId: string,
): Promise<ShownOffer> {
  const { reader } = platform.database
  const [row] = await offersById(reader, [offerId])
  if (!row) throw noSuchOffer()
  const privileged = actor?.role === 'admin' || actor?.userId === row.merchant_id
  if (!privileged) {
    const suspended = await isSuspended(reader, [row.merchant_id])
    if (row.status !== 'live' || suspended.size > 0) throw noSuchOffer()
  }
  return shownOffer(platform, row)
}

const positionIn = <Sort extends OfferQuery['sort']>(sort: Sort) =>
  z.tuple([z.literal(sort), z.int().min(0).max(10_000), idParam])
/** What a cursor of each sort holds: made once, since a schema takes longer to make than a page to read. */
const POSITIONS = {
  newest: positionIn('newest'),
  commission_desc: positionIn('commission_desc'),
  commission_asc: positionIn('commission_asc'),
}

/**
 * Live offers of active merchants, or with `mine` the caller's own in every status. Pages neither repeat nor skip an offer
 * that keeps its rate and stays listed, whatever happens to others meanwhile: the cursor is a place in the order, not a
 * count. By commission, an offer whose rate moves it across that place is met twice or not at all; by newest none is, as
 * the place of an offer is when it was made, not when it went live. Refuses with `unauthenticated` or `forbidden` when
 * `mine` is asked for by nobody or by no merchant, and with `validation_failed` for a cursor of another list or sort and
 * for a status other than live without `mine`.
 */
export async function listOffers(
  platform: Platform,
  actor: Actor | null,
  query: OfferQuery,
): Promise<Page<ShownOffer>> {
  const cursor = decodeCursor(query.cursor, POSITIONS[query.sort])
  const offers = await offersListed(platform, {
    scope: scopeOf(actor, query),
    filter: query,
    sort: query.sort,
    after: cursor && { commissionRate: cursor[1], id: cursor[2] },
    limit: query.limit + 1,
  })
  return pageOf(offers, query.limit, (last) => encodeCursor([query.sort, last.commission_rate, last.id]))
}

/**
 * Each list asks for other offers, but most of them were shown a moment ago: so where they stand is asked first, and then for those
 * that are not kept as they are now. When one has changed in between, the whole list is read in one statement, that of one moment.
 * So it is at once where a second question is dear and the list before had offers that were not kept: whoever reads on meets more.
 */
async function offersListed(platform: Platform, listing: OfferListing): Promise<ShownOffer[]> {
  const { reader, dialect } = platform.database
  const kept = keptOffers(platform)
  const hopeful = dialect === 'sqlite' || kept.hadAll
  const byPlaces =
    listing.filter.text === undefined && hopeful ? await offersAtPlaces(platform, listing) : null
  if (byPlaces) return byPlaces
  const rows = await listRows(reader, dialect, listing)
  kept.hadAll = rows.every((row) => kept.get(row) !== undefined)
  return rows.map((row) => kept.get(row) ?? kept.keep(row, shown(platform, row, row.merchant_name)))
}

/** `null` when an offer has changed after its place was read. */
async function offersAtPlaces(platform: Platform, listing: OfferListing): Promise<ShownOffer[] | null> {
  const { reader, dialect } = platform.database
  const kept = keptOffers(platform)
  const places = await listPlaces(reader, dialect, listing)
  const known = places.map((place) => kept.get(place))
  const missing = places.filter((_, index) => !known[index]).map(({ id }) => id)
  kept.hadAll = missing.length === 0
  const rows = new Map((await offersById(reader, missing)).map((row) => [row.id, row]))
  const found = places.map((place, index) => {
    const row = rows.get(place.id)
    if (row?.updated_at !== place.updated_at) return known[index]
    return kept.keep(place, shown(platform, row, place.merchant_name))
  })
  return found.every((offer) => offer !== undefined) ? found : null
}

const ofPlatform = new WeakMap<Platform, KeptOffers<ShownOffer>>()

function keptOffers(platform: Platform): KeptOffers<ShownOffer> {
  const kept = ofPlatform.get(platform) ?? new KeptOffers<ShownOffer>()
  ofPlatform.set(platform, kept)
  return kept
}

/** Offers by id, for other concepts; unknown ids are missing. */
export async function offerRecords(
  platform: Platform,
  db: Queries | Tx,
  offerIds: readonly string[],
): Promise<Map<string, OfferRecord>> {
  const rows = await offersById(db, [...new Set(offerIds)])
  return new Map(rows.map((row) => [row.id, recordOf(platform, row)]))
}

/** As callers are shown it; for services of this concept. */
export async function shownOffer(platform: Platform, row: OfferRow): Promise<ShownOffer> {
  const [offer] = await shownOffers(platform, [row])
  if (!offer) throw new Error('one row gives one offer')
  return offer
}

async function shownOffers(platform: Platform, rows: readonly OfferRow[]): Promise<ShownOffer[]> {
  const merchants = [...new Set(rows.map((row) => row.merchant_id))]
  const names = await displayNamesOf(platform.database.reader, merchants)
  return rows.map((row) => shown(platform, row, names.get(row.merchant_id) ?? ''))
}

function shown(platform: Platform, row: OfferRow, merchantName: string): ShownOffer {
  return Object.assign(recordOf(platform, row), {
    merchant: { id: row.merchant_id, display_name: merchantName },
  })
}

/** Field by field: a page has fifty, and to copy all but some of a row's fields is slow. */
function recordOf(platform: Platform, row: OfferRow): OfferRecord {
  const vetting = vettingOf(platform, row)
  return {
    id: row.id,
    merchant_id: row.merchant_id,
    title: row.title,
    description: row.description,
    product_url: row.product_url,
    image_url: row.image_url,
    category: row.category,
    niche: row.niche,
    commission_rate: row.commission_rate,
    status: row.status,
    vetting,
    vetting_reason: vetting === 'rejected' && row.status !== 'live' ? row.vetting_reason : null,
    attribution_window_days: row.attribution_window_days,
    product_ids: row.product_ids === null ? null : JSON.parse(row.product_ids),
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

function scopeOf(actor: Actor | null, query: OfferQuery): OfferScope {
  if (query.mine) {
    if (!actor) throw new Refusal('unauthenticated', 'To list your own offers, log in as a merchant.')
    if (actor.role !== 'merchant') throw new Refusal('forbidden', 'Only merchants have offers of their own.')
    return { kind: 'own', merchantId: actor.userId, status: query.status }
  }
  if (query.status === undefined || query.status === 'live') return { kind: 'public' }
  throw new Refusal('validation_failed', 'Only live offers are public.', {
    issues: [{ path: 'status', message: 'can be another than live with mine=true only' }],
  })
}

/** Changes a locked offer, and what depends on it: caches, vetting queue, flags. Values that it has already are no change. */
export async function applyChange(
  platform: Platform,
  tx: Tx,
  offer: OfferRow,
  change: OfferChange,
): Promise<OfferRow> {
  const news: OfferChange = Object.fromEntries(
    Object.entries(change).filter(
      ([name, value]) => value !== undefined && value !== offer[name as keyof OfferRow],
    ),
  )
  if (Object.keys(news).length === 0) return offer
  const updatedAt = { updated_at: changedAt(platform, offer) }
  const changed = await changeOffer(tx, offer, { ...news, ...updatedAt })
  if (!changed) throw new Error(`offer ${offer.id} moved although it was locked`)
  if (offer.status === 'live' || news.status === 'live') clearPublicOffers(platform, tx)
  // A draft has no links yet.
  if (offer.status !== 'draft' && (news.status !== undefined || news.product_url !== undefined)) {
    afterCommit(tx, () => platform.caches.clear('slug'))
  }
  const row: OfferRow = { ...offer, ...(news as Partial<OfferRow>), ...updatedAt }
  if (news.commission_rate !== undefined || news.status !== undefined) await followVetting(platform, tx, row)
  if (news.product_url !== undefined || news.status === 'live')
    await flagUnverifiedHost(platform, tx, row, offer)
  return row
}

/** Two changes within one millisecond must be told apart: by `updated_at` is known whether an offer is still as it was shown. */
export function changedAt(platform: Platform, offer: OfferRow): number {
  return Math.max(platform.clock.now(), offer.updated_at + 1)
}

/** Keeps the admins' queue in step with an offer: in it while its rate waits for their word, and out of it otherwise. */
async function followVetting(platform: Platform, tx: Tx, offer: OfferRow): Promise<void> {
  if (offer.status === 'ended') return settleVetting(platform, tx, offer.id, 'The offer has ended.')
  if (vettingOf(platform, offer) === 'pending') return askForVetting(platform, tx, offer)
  await settleVetting(platform, tx, offer.id, 'The rate needs no decision any more.')
}

function refuseUnvettedRaise(platform: Platform, offer: OfferRow, rate: BasisPoints | undefined): void {
  if (offer.status !== 'live' || rate === undefined) return
  const decision = mayRaiseLiveOffer({
    presentRate: offer.commission_rate,
    commissionRate: rate,
    highCommissionRate: platform.config.HIGH_COMMISSION_RATE,
    decision: lastVetting(offer),
  })
  if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
}

function vettingOf(platform: Platform, offer: OfferRow): VettingState {
  return vettingStateOf({
    commissionRate: offer.commission_rate,
    highCommissionRate: platform.config.HIGH_COMMISSION_RATE,
    decision: lastVetting(offer),
  })
}

function lastVetting({ vetting_verdict, vetted_rate, rejection_scope }: OfferRow): VettingDecision | null {
  if (vetting_verdict === null || vetted_rate === null) return null
  return { verdict: vetting_verdict, commissionRate: vetted_rate, rejectionScope: rejection_scope }
}

/** The addresses of an offer as they may be sent out, so far as they are given; `validation_failed` for the others. */
function checkedAddresses(fields: Partial<OfferFields>): Pick<OfferChange, 'product_url' | 'image_url'> {
  const checked: Pick<OfferChange, 'product_url' | 'image_url'> = {}
  const issues: { path: string; message: string }[] = []
  for (const path of ['product_url', 'image_url'] as const) {
    const text = fields[path]
    if (text === undefined || text === null) continue
    const check = checkProductUrl(text)
    if (check.ok) checked[path] = check.url
    else issues.push({ path, message: check.message })
  }
  if (issues.length === 0) return checked
  throw invalidFields(issues)
}

export function noSuchOffer(): Refusal {
  return new Refusal('not_found', 'There is no such offer.')
}
