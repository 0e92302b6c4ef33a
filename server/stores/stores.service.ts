import { idParam } from '../../shared/schemas/common.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import type { Queries, Tx } from '../platform/database.ts'
import { lockName } from '../platform/named-lock.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/page.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { IntegrityError, UnknownKeyError } from '../platform/vault.ts'
import { domainLock, flagFullDomain } from './shared-domains.service.ts'
import { checkStoreQuota, refuseSecretGuesses, secretTaken } from './store-limits.service.ts'
import { keyMissing, openSecret, sealSecret, secretFingerprints } from './store-secrets.service.ts'
import {
  claimsOnDomain,
  countStoresInUse,
  deleteSecrets,
  everyStore,
  insertSecret,
  insertStore,
  lockOwnStore,
  ownStore,
  replaceSecret,
  restoreStore,
  type StoreRow,
  type StoreSecretRow,
  secretsByFingerprint,
  secretsOf,
  storesOf,
} from './stores.store.ts'
import { forgetClaims } from './webhook-claims.service.ts'

export type { StoreRow } from './stores.store.ts'

/** How long a store may go on signing with a secret that was replaced. */
const FORMER_SECRET_MS = 24 * 3600_000
/** Each webhook may be tried against all of them, so quick rotations must not pile up. */
const MAX_FORMER_SECRETS = 3
/** Each delivery may be tried against the secrets of all of them. */
export const MAX_CLAIMS_PER_DOMAIN = 10

interface PageRequest {
  limit: number
  cursor?: string | undefined
}

/**
 * Connects a merchant's store by its host name (lower case), beside other merchants' claims on it: merchants type their own
 * secrets, so a signature proves no ownership. A store that this merchant removed earlier comes back as the same row, so that an
 * order which it reported cannot be reported again under a new store.
 * Refuses with `store_taken` (this merchant has connected it), `secret_taken`, `quota_exceeded`, `conflict` (an operator released
 * the merchant's claim, or the domain has as many claims as it can have), and `rate_limited` after too many taken secrets.
 */
export async function connectStore(
  platform: Platform,
  merchantId: string,
  input: { shop_domain: string; webhook_secret: string },
): Promise<StoreRow> {
  const domain = input.shop_domain
  const store = await refusingDuplicates(platform, merchantId, async (tx) => {
    await checkStoreQuota(tx, merchantId)
    await lockName(tx, domainLock(domain))
    const claims = await claimsOnDomain(tx, domain)
    const own = claims.filter((claim) => claim.merchant_id === merchantId)
    if (own.some((claim) => claim.removed_at === null)) throw storeTaken()
    if (own.some((claim) => claim.released_at !== null)) throw claimReleased(domain)
    if (claims.filter((claim) => claim.removed_at === null).length >= MAX_CLAIMS_PER_DOMAIN) {
      // The flag must outlive the refusal.
      await flagFullDomain(platform, tx, domain, { merchantId, claims: MAX_CLAIMS_PER_DOMAIN })
      return null
    }
    const [former] = own
    const row = former
      ? { ...former, removed_at: null, first_event_at: null }
      : newStore(platform, merchantId, domain)
    if (!former) await insertStore(tx, row)
    else if (!(await restoreStore(tx, former.id))) throw storeTaken()
    await addSecret(platform, tx, row, input.webhook_secret)
    await recordAudit(platform, tx, {
      ...storeAction(merchantId, 'store.connect', row),
      before: former ? stateOf(former) : null,
      after: stateOf(row),
    })
    forgetClaims(platform, tx, domain)
    return row
  })
  if (!store) throw domainFull(domain)
  return store
}

function newStore(platform: Platform, merchantId: string, domain: string): StoreRow {
  return {
    id: platform.ids.next(),
    merchant_id: merchantId,
    shop_domain: domain,
    created_at: platform.clock.now(),
    removed_at: null,
    released_at: null,
    first_event_at: null,
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

/** One of the merchant's stores in use. Refuses with `not_found`. */
export async function getStore(platform: Platform, merchantId: string, storeId: string): Promise<StoreRow> {
  const store = await ownStore(platform.database.reader, merchantId, storeId)
  if (!store) throw noSuchStore()
  return store
}

/** Every merchant's stores with the removed ones, newest first: for operators. */
export async function listEveryStore(platform: Platform, page: PageRequest): Promise<Page<StoreRow>> {
  const after = decodeCursor(page.cursor, idParam)
  const rows = await everyStore(platform.database.reader, after, page.limit + 1)
  return pageOf(rows, page.limit, (last) => encodeCursor(last.id))
}

export interface SecretRotation {
  secret: string
  /** Ends every former secret at once. Without it the secret that is replaced stays valid for 24 hours. */
  revokeFormer?: boolean | undefined
}

/**
 * Gives a store a new webhook secret. The secret that the store has already changes nothing but what `revokeFormer` asks for, and a
 * former one of its own becomes the present one again. Refuses with `not_found`, `secret_taken`, and `rate_limited` after too many
 * taken secrets.
 */
export function rotateSecret(
  platform: Platform,
  merchantId: string,
  storeId: string,
  { secret, revokeFormer = false }: SecretRotation,
): Promise<StoreRow> {
  return refusingDuplicates(platform, merchantId, async (tx) => {
    const store = await lockOwnStore(tx, merchantId, storeId)
    if (!store) throw noSuchStore()
    const secrets = await secretsOf(tx, storeId)
    const fingerprints = secretFingerprints(platform, secret)
    const present = secrets.find((row) => row.valid_until === null)
    const replaced = present === undefined || !fingerprints.includes(present.fingerprint)
    const former = secrets.filter(
      (row) => row.valid_until !== null && !fingerprints.includes(row.fingerprint),
    )
    if (!replaced && !(revokeFormer && former.length > 0)) return store
    const dropped = revokeFormer ? former : replaced ? former.slice(MAX_FORMER_SECRETS - 1) : []
    await deleteSecrets(
      tx,
      dropped.map((row) => row.id),
    )
    if (replaced) {
      if (present && revokeFormer) await deleteSecrets(tx, [present.id])
      else if (present) await retireSecret(platform, tx, store, present)
      await addSecret(platform, tx, store, secret)
    }
    const left = await secretsOf(tx, storeId)
    await recordAudit(platform, tx, {
      ...storeAction(merchantId, 'store.rotate_secret', store),
      before: { ...stateOf(store), former_secrets: secrets.length - 1 },
      after: {
        ...stateOf(store),
        former_secrets: left.length - 1,
        replaced,
        revoked_former: revokeFormer,
      },
    })
    forgetClaims(platform, tx, store.shop_domain)
    return store
  })
}

/** Whether the merchant has a store in use, as offers must before they go live. */
export async function merchantHasStore(db: Queries | Tx, merchantId: string): Promise<boolean> {
  return (await countStoresInUse(db, merchantId)) > 0
}

/** The lock on whether a merchant has a store, for what depends on it. */
export function merchantStoresLock(merchantId: string): string {
  return `stores of merchant ${merchantId}`
}

async function addSecret(platform: Platform, tx: Tx, store: StoreRow, secret: string): Promise<void> {
  await refuseSecretGuesses(platform, tx, store.merchant_id)
  const now = platform.clock.now()
  for (const holder of await secretsByFingerprint(tx, secretFingerprints(platform, secret))) {
    const expired = holder.valid_until !== null && holder.valid_until <= now
    if (!expired && holder.store_id !== store.id) throw await secretTaken(platform, store.merchant_id)
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

/** What an audit entry about a store says beside its before and after. */
export function storeAction(actor: string, action: string, store: StoreRow, reason: string | null = null) {
  return { actor, action, subjectType: 'store', subjectId: store.id, reason }
}

/** A store as audit entries show it. */
export function stateOf(store: StoreRow) {
  return {
    merchant_id: store.merchant_id,
    shop_domain: store.shop_domain,
    in_use: store.removed_at === null,
    released: store.released_at !== null,
  }
}

/** The database decides between two transactions that add one secret, or one merchant's claim, at the same moment. */
async function refusingDuplicates<T>(
  platform: Platform,
  merchantId: string,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await platform.database.transaction(work)
  } catch (error) {
    const fault = platform.database.faultOf(error)
    if (fault?.kind !== 'unique') throw error
    throw fault.constraint.includes('fingerprint') ? await secretTaken(platform, merchantId) : storeTaken()
  }
}

function storeTaken(): Refusal {
  return new Refusal('store_taken', 'You have connected this shop domain already.')
}

function claimReleased(domain: string): Refusal {
  return new Refusal(
    'conflict',
    `An operator released your claim on ${domain}. Ask the operator to allow it again.`,
  )
}

function domainFull(domain: string): Refusal {
  return new Refusal(
    'conflict',
    `${domain} has ${MAX_CLAIMS_PER_DOMAIN} claims already. Ask the operator to release the wrong ones.`,
  )
}

export function noSuchStore(): Refusal {
  return new Refusal('not_found', 'There is no such store.')
}
