import { randomInt } from 'node:crypto'
import type { ResolvedLink } from '../../shared/schemas/links.ts'
import { OPERATOR } from '../flags/audit.service.ts'
import { AUTHENTIC_COLUMNS, LINK_TARGETS, type OfferRecord, offerRecords } from '../offers/offers.service.ts'
import {
  parameterNames,
  withoutTrackingReference,
  withTrackingReference,
} from '../offers/product-url.rule.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { authentic, insertRow, lockRows, type RowOf } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { peopleOf } from '../users/users.service.ts'
import {
  type LinkRow,
  linkBySlug,
  linksByApplication,
  linksById,
  linksOf,
  targetOfSlug,
} from './links.store.ts'
import { canBeSlug, slugIn } from './slug.rule.ts'

/** A link with its locked terms. `product_ids`: `null` or empty for every product. */
export type LinkRecord = Omit<LinkRow, 'product_ids' | 'row_digest'> & { product_ids: string[] | null }

type NewLink = Omit<LinkRecord, 'id' | 'slug' | 'created_at' | 'ended_at' | 'end_reason'>

/** A link and the terms that its approval locked, as the decision about a sale sees them. */
export interface LinkTerms
  extends Omit<LinkRecord, 'application_id' | 'created_at' | 'offer_rate' | 'ended_at' | 'end_reason'> {
  locked_at: number
  /** The offer's rate at the approval. Missing where the link has that one. */
  offer_rate?: number
}

function termsOf({
  application_id,
  created_at: locked_at,
  offer_rate,
  ended_at,
  end_reason,
  ...terms
}: LinkRecord): LinkTerms {
  return { ...terms, locked_at, ...(offer_rate !== null && { offer_rate }) }
}

/** Creates the link of an approved application, in the transaction of the approval. */
export async function createLink(platform: Platform, tx: Tx, link: NewLink): Promise<LinkRecord> {
  const row = await insertRow(tx, 'affiliate_links', {
    id: platform.ids.next(),
    slug: randomSlug(),
    ...link,
    product_ids: link.product_ids && JSON.stringify(link.product_ids),
    created_at: platform.clock.now(),
  })
  return linkRecordOf(row)
}

/** The address that a creator shares. */
export function linkUrl(platform: Platform, slug: string): string {
  return `${platform.publicBaseUrl}/go/${slug}`
}

/** The link of a slug as people type it; `null` for an unknown one. Throws `TamperedRow` and `UnknownKeyError`. */
export async function linkOfSlug({ keys }: Pick<Platform, 'keys'>, db: Queries | Tx, text: string) {
  const slug = slugIn(text)
  const row = slug === null ? undefined : await linkBySlug(db, keys, slug)
  return row ? linkRecordOf(row) : null
}

/** Locks a link for a change by its merchant, or by `OPERATOR`. Refuses with `not_found`. */
export async function lockLink(tx: Tx, text: string, actor: string): Promise<RowOf<'affiliate_links'>> {
  const slug = slugIn(text)
  const [link] = slug === null ? [] : await lockRows(tx, 'affiliate_links', { slug })
  if (link && [OPERATOR, link.merchant_id].includes(actor)) return link
  throw linkNotFound()
}

/** Links by id; unknown ids are missing. */
export async function linkRecords(db: Queries | Tx, linkIds: readonly string[]) {
  const rows = await linksById(db, [...new Set(linkIds)])
  return new Map(rows.map((row) => [row.id, linkRecordOf(row)]))
}

/**
 * What a sale is decided by, by link id; unknown ids are missing. Throws `TamperedRow` for a link that was changed, so that no sale is
 * decided by it, and `UnknownKeyError`.
 */
export async function linkTerms(db: Queries | Tx, keys: AppKeys, linkIds: readonly string[]) {
  const rows = authentic(keys, 'affiliate_links', await linksById(db, [...new Set(linkIds)]))
  return new Map(rows.map((row) => [row.id, termsOf(linkRecordOf(row))]))
}

/** Links by application id; applications without a link are missing. */
export async function linksOfApplications(db: Queries | Tx, applicationIds: readonly string[]) {
  const rows = await linksByApplication(db, applicationIds)
  return new Map(rows.map((row) => [row.application_id, linkRecordOf(row)]))
}

/** The present target of a link. */
export interface RedirectTarget {
  linkId: string
  /**
   * `tracked`: the product page with the tracking reference. `untracked`: without it, because no sale could be accepted (link ended,
   * offer not live, creator suspended). `gone`: no target, because the merchant is suspended.
   */
  state: 'tracked' | 'untracked' | 'gone'
  /** The product page, fit for a Location header. */
  url: string
  /** `url` with the tracking reference between these two. */
  beforeReference: string
  /** The fragment of `url`. */
  afterReference: string
  /** The names of the parameters that a visit cannot set. */
  ownNames: ReadonlySet<string>
}

/** The target of a slug, cached; `null` for an unknown one. Refuses with `unavailable` when the database is too slow. */
export async function resolveTarget(platform: Platform, slug: string): Promise<RedirectTarget | null> {
  if (!canBeSlug(slug)) return null
  return platform.caches.get(LINK_TARGETS, slug, () => readTarget(platform, slug))
}

/** The cached target of a slug; `undefined` if it is not cached. */
export function cachedTarget(platform: Platform, slug: string): RedirectTarget | null | undefined {
  return platform.caches.peek(LINK_TARGETS, slug)
}

/** As `cachedTarget`, also an outdated one: for while the database is down. */
export function lastTarget(platform: Platform, slug: string): RedirectTarget | null | undefined {
  return platform.caches.peekOutdated(LINK_TARGETS, slug)
}

async function readTarget(platform: Platform, slug: string): Promise<RedirectTarget | null> {
  const row = await targetOfSlug(platform.database.reader, platform.keys, slug, AUTHENTIC_COLUMNS)
  if (!row) return null
  const parameter = platform.config.TRACKING_PARAMETER
  const url = withoutTrackingReference(row.product_url, parameter)
  const fragmentAt = url.indexOf('#')
  const page = fragmentAt === -1 ? url : url.slice(0, fragmentAt)
  return {
    linkId: row.link_id,
    state: stateOf(row, row.status, {
      merchant: row.merchant_suspended_at !== null,
      creator: row.creator_suspended_at !== null,
    }),
    url,
    beforeReference: withTrackingReference(page, parameter, ''),
    afterReference: url.slice(page.length),
    ownNames: new Set([...parameterNames(url), parameter]),
  }
}

function stateOf(
  { ended_at }: Pick<LinkRecord, 'ended_at'>,
  status: OfferRecord['status'],
  suspended: { merchant: boolean; creator: boolean },
): RedirectTarget['state'] {
  if (suspended.merchant) return 'gone'
  return ended_at === null && status === 'live' && !suspended.creator ? 'tracked' : 'untracked'
}

/** A link with its offer and creator, as callers see it. */
export interface ShownLink extends LinkRecord {
  active: boolean
  creator: { id: string; display_name: string }
  offer: OfferRecord & { merchant: { id: string; display_name: string } }
}

/** A link for the public; stores no click. Refuses with `not_found`. */
export async function resolveLink(platform: Platform, slug: string): Promise<ShownLink> {
  const link = await linkOfSlug(platform, platform.database.reader, slug)
  const [shown] = link ? await shownLinks(platform, [link]) : []
  if (!shown) throw linkNotFound()
  return shown
}

export function linkNotFound(): Refusal {
  return new Refusal('not_found', 'Affiliate link not found.')
}

/** The newest links of all creators, for the operator. */
export async function newestLinks(platform: Platform, limit: number): Promise<ShownLink[]> {
  const rows = await linksOf(platform.database.reader, {}, null, limit)
  return shownLinks(platform, rows.map(linkRecordOf))
}

/** Links with the present state of their offers, merchants and creators, in the given order. */
export async function shownLinks(
  platform: Platform,
  links: readonly LinkRecord[],
  db: Queries = platform.database.reader,
): Promise<ShownLink[]> {
  const offers = await offerRecords(
    platform,
    db,
    links.map((link) => link.offer_id),
  )
  const people = await peopleOf(
    db,
    links.flatMap((link) => [link.creator_id, link.merchant_id]),
  )
  const party = (id: string) => ({ id, display_name: people.get(id)?.display_name ?? '' })
  const isSuspended = (id: string) => typeof people.get(id)?.suspended_at === 'number'
  return links.map((link) => {
    const offer = offers.get(link.offer_id)
    if (!offer) throw new Error(`link ${link.id} without its offer`)
    const suspended = { merchant: isSuspended(link.merchant_id), creator: isSuspended(link.creator_id) }
    const state = stateOf(link, offer.status, suspended)
    return {
      ...link,
      active: state === 'tracked',
      creator: party(link.creator_id),
      offer: { ...offer, merchant: party(link.merchant_id) },
    }
  })
}

export function linkRecordOf({ product_ids, row_digest, ...row }: LinkRow): LinkRecord {
  return { ...row, product_ids: product_ids === null ? null : JSON.parse(product_ids) }
}

/** A link for the public. */
export function wireResolved(platform: Platform, link: ShownLink): ResolvedLink {
  return {
    slug: link.slug,
    url: linkUrl(platform, link.slug),
    active: link.active,
    creator: link.creator,
    offer: wireLinkedOffer(link.offer),
  }
}

/** The offer of a link, on the wire. */
export function wireLinkedOffer({ id, title, category, niche, status, merchant }: ShownLink['offer']) {
  return { id, title, category, niche, status, merchant }
}

/** Digits and lower-case letters without the ambiguous 0, 1, i, l, o. */
const ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz'
/** 31^10 is about 2^49: too many to guess, and short enough for a caption. */
const LENGTH = 10

export function randomSlug(): string {
  return Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}
