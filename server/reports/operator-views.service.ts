import { jsonOrNull } from '../../shared/json.ts'
import { listApplications } from '../applications/applications.service.ts'
import { listFlags } from '../flags/flags.service.ts'
import { couponHistory } from '../links/coupons.service.ts'
import { linkNotFound, linkOfSlug } from '../links/links.service.ts'
import { listMails } from '../notifications/channels/mail/operator-mails.service.ts'
import { getEveryOffer, listEveryOffer, offerStatusChanges } from '../offers/offers.service.ts'
import { getPayout, listPayouts, payoutLines, payoutNotFound } from '../payouts/payouts.service.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import { profileOf } from '../profile/profile.service.ts'
import { listSales } from '../sales/sale-list.service.ts'
import { showStores } from '../stores/store-activity.service.ts'
import { listStores } from '../stores/stores.service.ts'
import { destinationView } from '../users/sealed-accounts.service.ts'
import { listSessions } from '../users/sessions.service.ts'
import { findUser } from '../users/users.service.ts'
import { listLinks, withEarnings } from './listed-links.service.ts'

/*
 * What the operator sees of one account, offer, link or payout: its state, and the newest rows of each list about it, at most `limit`.
 * All are read along an index.
 */

export type UserView = Awaited<ReturnType<typeof viewUser>>

/** An account by id or e-mail. Lists that its role does not have are `null`. Refuses with `not_found`. */
export async function viewUser(platform: Platform, idOrEmail: string, limit: number) {
  const user = await findUser(platform, idOrEmail)
  const { id, role } = user
  const page = { limit }
  const own = scopeOf(user)
  const isMerchant = role === 'merchant'
  return {
    user,
    profile: await profileOf(platform, id),
    stores: isMerchant ? await storesOf(platform, id, page) : null,
    offers: isMerchant ? await offersOf(platform, id, page) : null,
    links: own && (await listLinks(platform, own, page)),
    sales: own && (await listSales(platform, own, page)),
    payouts: role === 'creator' ? await payoutsOf(platform, id, page) : null,
    sessions: await listSessions(platform, id, page),
    mails: await listMails(platform, { userId: id, ...page }),
    flags: await openFlagsAbout(platform, id, page),
  }
}

function scopeOf({ id, role }: { id: string; role: string }): OwnScope | null {
  if (role === 'admin') return null
  return role === 'merchant' ? { merchantId: id } : { creatorId: id }
}

async function storesOf(platform: Platform, merchantId: string, page: PageRequest) {
  const { items, next_cursor } = await listStores(platform, merchantId, page)
  return { items: await showStores(platform, items), next_cursor }
}

function offersOf(platform: Platform, merchantId: string, page: PageRequest) {
  const every = { merchantId, status: null, vetting: null }
  return pageById(page, (request) => listEveryOffer(platform, { ...every, ...request }))
}

function payoutsOf({ database: { reader } }: Platform, creatorId: string, page: PageRequest) {
  return pageById(page, (request) => listPayouts(reader, creatorId, { state: null, ...request }))
}

function openFlagsAbout(platform: Platform, subjectId: string, page: PageRequest) {
  return listFlags(platform, { subjectId, status: 'open', ...page })
}

export type OfferView = Awaited<ReturnType<typeof viewOffer>>

/** An offer in any status. Refuses with `not_found`. */
export async function viewOffer(platform: Platform, offerId: string, limit: number) {
  const { reader } = platform.database
  const offer = await getEveryOffer(platform, offerId)
  const page = { limit }
  return {
    offer,
    statuses: await offerStatusChanges(reader, offerId, limit),
    applications: await listApplications(platform, { offerId }, page),
    links: await listLinks(platform, { offerId }, page),
    sales: await listSales(platform, { merchantId: offer.merchant_id }, { offer_id: offerId, ...page }),
    flags: await openFlagsAbout(platform, offerId, page),
  }
}

export type LinkView = Awaited<ReturnType<typeof viewLink>>

/** A link by its slug as people type it. Refuses with `not_found`. */
export async function viewLink(platform: Platform, slug: string, limit: number) {
  const { reader } = platform.database
  const record = await linkOfSlug(platform, reader, slug)
  const [link] = record ? await withEarnings(platform, [record]) : []
  if (!link) throw linkNotFound()
  const page = { limit }
  const sales = { affiliate_link_slug: link.slug, ...page }
  return {
    link,
    coupons: await couponHistory(reader, link.id, limit),
    sales: await listSales(platform, { creatorId: link.creator_id }, sales),
    flags: await openFlagsAbout(platform, link.id, page),
  }
}

export type PayoutView = Awaited<ReturnType<typeof viewPayout>>

/** A payout with all that it carries and every call to the processor. Refuses with `not_found`. */
export async function viewPayout(platform: Platform, payoutId: string, limit: number) {
  const { reader } = platform.database
  const payout = await getPayout(reader, payoutId)
  if (!payout) throw payoutNotFound(payoutId)
  const calls = await listAttempts(reader, 'payout', payoutId)
  const request = jsonOrNull(calls.at(-1)?.request ?? '') as { destination_id?: string } | null
  return {
    payout,
    /** Of the last call; `null` before the first. */
    destination: await destinationView(reader, payout.creator_id, request?.destination_id ?? ''),
    lines: await payoutLines(reader, payoutId),
    calls,
    flags: await openFlagsAbout(platform, payoutId, { limit }),
  }
}
