import { createSecretKey, type KeyObject } from 'node:crypto'
import { idParam } from '../../shared/schemas/common.ts'
import { shopDomain } from '../../shared/schemas/stores.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/page.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { IntegrityError, UnknownKeyError } from '../platform/vault.ts'
import { flagBrokenSecret, openSecret, sealSecret, secretFingerprints } from './store-secrets.service.ts'
import {
  activeStoreOfDomain,
  countStoresInUse,
  deleteSecrets,
  deleteSecretsOf,
  everyStore,
  insertSecret,
  insertStore,
  lockOwnStore,
  removedStoreOfDomain,
  replaceSecret,
  type StoreRow,
  type StoreSecretRow,
  secretsByFingerprint,
  secretsOf,
  setRemovedAt,
  storesOf,
} from './stores.store.ts'

export type { StoreRow } from './stores.store.ts'

const CACHE = 'store'
/** How long a store may go on signing with the secret that a rotation has replaced. */
const FORMER_SECRET_MS = 24 * 3600_000
/** Each webhook is tried against all of them, so quick rotations must not pile up. */
const MAX_FORMER_SECRETS = 3

interface PageRequest {
  limit: number
  cursor?: string | undefined
}

/** What the webhook edge needs to know of the store that a delivery names. */
export interface WebhookStore {
  storeId: string
  merchantId: string
  /** The secrets that are valid now, as keys to sign with, the present one first. */
  keys: KeyObject[]
}

interface CachedStore {
  storeId: string
  merchantId: string
  /** As keys from the start: Node takes longer to find out what a text is than to sign with a key. */
  secrets: { key: KeyObject; validUntil: number | null }[]
}

/**
 * Connects a merchant's store by its host name (lower case). A store that this merchant removed earlier comes back as
 * the same row: an order that it reported then cannot be reported again under a new store.
 * Refuses with `store_taken` (the domain is in use, also by this merchant) and `secret_taken`.
 */
export function connectStore(
  platform: Platform,
  merchantId: string,
  input: { shop_domain: string; webhook_secret: string },
): Promise<StoreRow> {
  return withoutDoubles(platform, async (tx) => {
    const domain = input.shop_domain
    if (await activeStoreOfDomain(tx, domain)) throw storeTaken()
    const former = await removedStoreOfDomain(tx, merchantId, domain)
    const store = former ?? newStore(platform, merchantId, domain)
    if (!former) await insertStore(tx, store)
    else if (!(await setRemovedAt(tx, former.id, null))) throw storeTaken()
    await addSecret(platform, tx, store, input.webhook_secret)
    forget(platform, tx, domain)
    return { ...store, removed_at: null }
  })
}

function newStore(platform: Platform, merchantId: string, domain: string): StoreRow {
  return {
    id: platform.ids.next(),
    merchant_id: merchantId,
    shop_domain: domain,
    created_at: platform.clock.now(),
    removed_at: null,
  }
}

/** The merchant's stores in use, newest first. */
export async function listStores(
  platform: Platform,
  merchantId: string,
  page: PageRequest,
): Promise<Page<StoreRow>> {
  const after = decodeCursor(page.cursor, idParam)
  const rows = await storesOf(platform.database.reader, merchantId, after, page.limit + 1)
  return pageOf(rows, page.limit, (last) => encodeCursor(last.id))
}

/** Every merchant's stores with the removed ones, newest first: for operators. */
export async function listEveryStore(platform: Platform, page: PageRequest): Promise<Page<StoreRow>> {
  const after = decodeCursor(page.cursor, idParam)
  const rows = await everyStore(platform.database.reader, after, page.limit + 1)
  return pageOf(rows, page.limit, (last) => encodeCursor(last.id))
}

/**
 * Gives a store a new webhook secret; the former one stays valid for 24 hours. The secret that the store has already
 * changes nothing, and a former one of its own becomes the present one again. Refuses with `not_found`, `secret_taken`.
 */
export function rotateSecret(
  platform: Platform,
  merchantId: string,
  storeId: string,
  secret: string,
): Promise<StoreRow> {
  return withoutDoubles(platform, async (tx) => {
    const store = await lockOwnStore(tx, merchantId, storeId)
    if (!store) throw noSuchStore()
    const secrets = await secretsOf(tx, storeId)
    const fingerprints = secretFingerprints(platform, secret)
    const [present] = secrets
    if (present?.valid_until === null && fingerprints.includes(present.fingerprint)) return store
    const former = secrets.filter(
      (row) => row.valid_until !== null && !fingerprints.includes(row.fingerprint),
    )
    await deleteSecrets(
      tx,
      former.slice(MAX_FORMER_SECRETS - 1).map((row) => row.id),
    )
    if (present?.valid_until === null) await retireSecret(platform, tx, store, present)
    await addSecret(platform, tx, store, secret)
    forget(platform, tx, store.shop_domain)
    return store
  })
}

/** Removes a merchant's store and its secrets; its sales stay. Refuses with `not_found`, also the second time. */
export function removeStore(platform: Platform, merchantId: string, storeId: string): Promise<void> {
  return platform.database.transaction(async (tx) => {
    const store = await lockOwnStore(tx, merchantId, storeId)
    if (!store) throw noSuchStore()
    await takeOutOfUse(platform, tx, store)
  })
}

/**
 * Frees a domain that somebody has squatted, so that its owner can connect it. Recorded in the audit trail under
 * `actor` (a user's id or `OPERATOR`). Refuses with `not_found` when no store uses the domain.
 */
export function releaseDomain(
  platform: Platform,
  domain: string,
  actor: string,
  reason: string | null = null,
): Promise<StoreRow> {
  return platform.database.transaction(async (tx) => {
    const store = await activeStoreOfDomain(tx, domain.trim().toLowerCase())
    if (!store || !(await takeOutOfUse(platform, tx, store))) throw noSuchStore()
    await recordAudit(platform, tx, {
      actor,
      action: 'store.release',
      subjectType: 'store',
      subjectId: store.id,
      reason,
      before: { merchant_id: store.merchant_id, shop_domain: store.shop_domain, in_use: true },
      after: { merchant_id: store.merchant_id, shop_domain: store.shop_domain, in_use: false },
    })
    return { ...store, removed_at: platform.clock.now() }
  })
}

/** The store that uses a domain, for operators. */
export function storeInUse(platform: Platform, domain: string): Promise<StoreRow | undefined> {
  return activeStoreOfDomain(platform.database.reader, domain.trim().toLowerCase())
}

/**
 * The store that sends as `shopDomain`, with every secret that its signature may be made with now; `null` when nobody
 * has connected it. Cached. Refuses with `unavailable` when a secret was sealed with a key that this process lacks.
 */
export async function storeForWebhook(platform: Platform, shopDomain: string): Promise<WebhookStore | null> {
  // What is kept was a host name when it was read.
  const kept = platform.caches.peek<CachedStore | null>(CACHE, shopDomain)
  const cached = kept === undefined ? await loadWebhookStore(platform, shopDomain) : kept
  if (!cached) return null
  const now = platform.clock.now()
  const valid = cached.secrets.filter(({ validUntil }) => validUntil === null || validUntil > now)
  return {
    storeId: cached.storeId,
    merchantId: cached.merchantId,
    keys: valid.map(({ key }) => key),
  }
}

/** Whether the merchant has a store in use, as offers must before they go live. */
export async function merchantHasStore(db: Queries | Tx, merchantId: string): Promise<boolean> {
  return (await countStoresInUse(db, merchantId)) > 0
}

async function loadWebhookStore(platform: Platform, shopDomain: string): Promise<CachedStore | null> {
  const domain = hostNameOf(shopDomain)
  if (domain === null) return null
  return platform.caches.get(CACHE, domain, () => readWebhookStore(platform, domain))
}

function hostNameOf(text: string): string | null {
  const parsed = shopDomain.safeParse(text)
  return parsed.success ? parsed.data : null
}

async function readWebhookStore(platform: Platform, domain: string): Promise<CachedStore | null> {
  const { reader } = platform.database
  const store = await activeStoreOfDomain(reader, domain)
  if (!store) return null
  const secrets: CachedStore['secrets'] = []
  for (const row of await secretsOf(reader, store.id)) {
    try {
      const secret = await openSecret(platform, reader, store, row)
      secrets.push({ key: createSecretKey(secret, 'utf8'), validUntil: row.valid_until })
    } catch (error) {
      if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
      if (!(error instanceof IntegrityError)) throw error
      await flagBrokenSecret(platform, store, row, error)
    }
  }
  return { storeId: store.id, merchantId: store.merchant_id, secrets }
}

async function addSecret(platform: Platform, tx: Tx, store: StoreRow, secret: string): Promise<void> {
  const now = platform.clock.now()
  for (const holder of await secretsByFingerprint(tx, secretFingerprints(platform, secret))) {
    const expired = holder.valid_until !== null && holder.valid_until <= now
    if (!expired && holder.store_id !== store.id) throw secretTaken()
    await deleteSecrets(tx, [holder.id])
  }
  const row = { id: platform.ids.next(), store_id: store.id, valid_until: null, created_at: now }
  await insertSecret(tx, sealSecret(platform, store, row, secret))
}

/** Keeps the present secret valid for a while. One that does not open is of no use to the store, and goes. */
async function retireSecret(platform: Platform, tx: Tx, store: StoreRow, row: StoreSecretRow): Promise<void> {
  try {
    const secret = await openSecret(platform, tx, store, row)
    const former = { ...row, valid_until: platform.clock.now() + FORMER_SECRET_MS }
    await replaceSecret(tx, row.secret_encrypted, sealSecret(platform, store, former, secret))
  } catch (error) {
    if (error instanceof UnknownKeyError) throw keyMissing(platform, error)
    if (!(error instanceof IntegrityError)) throw error
    await deleteSecrets(tx, [row.id])
  }
}

/** Senders try again later, and so do merchants; the operator reads in the log which key is missing. */
function keyMissing(platform: Platform, { message }: UnknownKeyError): Refusal {
  platform.log.error(`a webhook secret was ${message}`)
  return new Refusal(
    'unavailable',
    'The service cannot open the secret of this store now. Try again later.',
    {
      internalDetail: message,
      retryAfter: 60,
    },
  )
}

async function takeOutOfUse(platform: Platform, tx: Tx, store: StoreRow): Promise<boolean> {
  if (!(await setRemovedAt(tx, store.id, platform.clock.now()))) return false
  await deleteSecretsOf(tx, store.id)
  forget(platform, tx, store.shop_domain)
  return true
}

function forget(platform: Platform, tx: Tx, domain: string): void {
  afterCommit(tx, () => platform.caches.drop(CACHE, domain))
}

/** Two merchants may come at the same moment with one domain or one secret: the database then decides. */
async function withoutDoubles<T>(platform: Platform, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await platform.database.transaction(work)
  } catch (error) {
    const fault = platform.database.faultOf(error)
    if (fault?.kind !== 'unique') throw error
    throw fault.constraint.includes('fingerprint') ? secretTaken() : storeTaken()
  }
}

function storeTaken(): Refusal {
  return new Refusal('store_taken', 'This shop domain is connected already.')
}

function secretTaken(): Refusal {
  return new Refusal(
    'secret_taken',
    'This webhook secret belongs to another store. Each store needs its own.',
  )
}

function noSuchStore(): Refusal {
  return new Refusal('not_found', 'There is no such store.')
}
