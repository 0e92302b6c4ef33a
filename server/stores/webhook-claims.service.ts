import { createSecretKey, type KeyObject } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { shopDomain } from '../../shared/schemas/stores.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import { requireAuthentic, TamperedRow } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { decodeShopifyHmac, matchesShopifyHmac } from '../shopify/signature.ts'
import { flagBrokenSecret, keyMissing, SEALED_SECRETS } from './store-secrets.service.ts'
import { claimsReached, type OwnedSecretRow, type StoreRow, secretsOf } from './stores.store.ts'

const CACHE = 'store'
/** Each delivery may be tried against the secrets of every claim. */
export const MAX_CLAIMS_PER_DOMAIN = 10

/** One merchant's claim on the shop domain that a delivery names. */
export interface WebhookClaim {
  storeId: string
  merchantId: string
  /** The secrets that are valid now, as HMAC keys: the present one first. */
  keys: KeyObject[]
}

interface CachedClaim extends Omit<WebhookClaim, 'keys'> {
  /** Key objects: with a string, Node would parse the key for each signature. */
  secrets: { key: KeyObject; validUntil: number | null }[]
}

/**
 * The claims that deliveries with a shop domain may belong to: those on it, then those that were moved from it to the shop's new name, which
 * Shopify may send much later. Of both, first those that have received events, by the time of their first event. Cached. Refuses with
 * `unavailable` when a secret was sealed with a key that this process lacks.
 */
export async function claimsForWebhook(platform: Platform, domainText: string): Promise<WebhookClaim[]> {
  // Only valid host names are cached.
  const kept = platform.caches.peek<CachedClaim[]>(CACHE, domainText)
  const cached = kept ?? (await loadClaims(platform, domainText))
  const now = platform.clock.now()
  return cached.map(({ secrets, ...claim }) => ({
    ...claim,
    keys: secrets.filter(({ validUntil }) => validUntil === null || validUntil > now).map(({ key }) => key),
  }))
}

/** Whether anyone claims a shop domain: at once when that is cached. */
export function isClaimed(platform: Platform, domainText: string): boolean | Promise<boolean> {
  const kept = platform.caches.peek<CachedClaim[]>(CACHE, domainText)
  return kept ? kept.length > 0 : loadClaims(platform, domainText).then((claims) => claims.length > 0)
}

/** One claim has at most this many secrets. */
const KEYS_ALWAYS_TRIED = 4
/** Bytes a second that may be hashed with further keys. Claims cost nothing, so this bounds the work that they can cause. */
const FURTHER_BYTES = 64 * 1024 * 1024
const hashing = { second: 0, bytes: 0 }
/** For larger bodies, other requests run between two keys. */
const SMALL_BODY = 64 * 1024

/**
 * The claim whose secret signed exactly these bytes, or `null`; secrets are unique. Present secrets are tried before former ones.
 * Refuses with `rate_limited` when the domain has more than four secrets and the budget for such domains in this second is used up.
 */
export async function findSigner(
  claims: readonly WebhookClaim[],
  rawBody: Buffer,
  signature: string | undefined,
): Promise<WebhookClaim | null> {
  const digest = decodeShopifyHmac(signature)
  if (!digest) return null
  for (const [tried, { claim, key }] of keysInOrder(claims).entries()) {
    if (tried >= KEYS_ALWAYS_TRIED) takeHashBudget(rawBody.length)
    if (tried > 0 && rawBody.length > SMALL_BODY) await nextTurn()
    if (matchesShopifyHmac(rawBody, digest, key)) return claim
  }
  return null
}

/** Counts `bytes` more that are hashed in this second. Refuses with `rate_limited` beyond the budget. */
function takeHashBudget(bytes: number): void {
  const second = Math.floor(performance.now() / 1000)
  if (second !== hashing.second) Object.assign(hashing, { second, bytes: 0 })
  if (hashing.bytes + bytes > FURTHER_BYTES) {
    const detail = 'Too many deliveries for this shop domain. Send this one again later.'
    throw new Refusal('rate_limited', detail, { retryAfter: 1 })
  }
  hashing.bytes += bytes
}

function keysInOrder(claims: readonly WebhookClaim[]): { claim: WebhookClaim; key: KeyObject }[] {
  const keys = (from: number, to?: number) =>
    claims.flatMap((claim) => claim.keys.slice(from, to).map((key) => ({ claim, key })))
  return [...keys(0, 1), ...keys(1)]
}

/** Drops the cached claims on the domains of this store once `tx` has committed. */
export function dropCachedClaims(
  platform: Platform,
  tx: Tx,
  { shop_domain, former_domain }: Pick<StoreRow, 'shop_domain' | 'former_domain'>,
): void {
  afterCommit(tx, () => {
    platform.caches.drop(CACHE, shop_domain)
    if (former_domain !== null) platform.caches.drop(CACHE, former_domain)
  })
}

async function loadClaims(platform: Platform, text: string): Promise<CachedClaim[]> {
  const parsed = shopDomain.safeParse(text)
  if (!parsed.success) return []
  return platform.caches.get(CACHE, parsed.data, () => readClaims(platform, parsed.data))
}

/** Sorts after every time. */
const LAST = Number.MAX_SAFE_INTEGER

async function readClaims(platform: Platform, domain: string): Promise<CachedClaim[]> {
  const { reader } = platform.database
  const isFormer = ({ shop_domain }: StoreRow) => Number(shop_domain !== domain)
  const stores = (await claimsReached(reader, domain, MAX_CLAIMS_PER_DOMAIN)).sort(
    (one, other) =>
      isFormer(one) - isFormer(other) || (one.first_event_at ?? LAST) - (other.first_event_at ?? LAST),
  )
  const ids = stores.map(({ id }) => id)
  const secrets = Map.groupBy(await secretsOf(reader, ids), (row) => row.store_id)
  const claims: CachedClaim[] = []
  for (const store of stores) {
    if (!(await isAuthentic(platform, store))) continue
    const claim: CachedClaim = { storeId: store.id, merchantId: store.merchant_id, secrets: [] }
    for (const row of secrets.get(store.id) ?? []) {
      const key = await openKey(platform, row)
      if (key) claim.secrets.push({ key, validUntil: row.valid_until })
    }
    claims.push(claim)
  }
  return claims
}

/** Whether the service wrote the store's row, which says whose deliveries are accepted. A changed one is flagged. */
async function isAuthentic(platform: Platform, store: StoreRow): Promise<boolean> {
  try {
    requireAuthentic(platform.keys, 'stores', store)
    return true
  } catch (error) {
    if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
    if (!(error instanceof TamperedRow)) throw error
    await platform.reportTampered(error)
    return false
  }
}

/** The secret as a key; `null` for one that was changed in the database, which is flagged. */
async function openKey(platform: Platform, row: OwnedSecretRow): Promise<KeyObject | null> {
  try {
    return createSecretKey(SEALED_SECRETS.open(platform.vault, row), 'utf8')
  } catch (error) {
    if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
    if (!(error instanceof IntegrityError)) throw error
    await flagBrokenSecret(platform, row, error)
    return null
  }
}
