import { plainShopDomain } from '../../shared/schemas/stores.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { advisoryLock, type Queries, type Tx } from '../platform/database/database.ts'
import { authentic, changeRow, insertRow, lockRows, rowProblem } from '../platform/database/protected-rows.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota, lockAccount } from '../users/users.service.ts'
import { domainLock, flagDomain } from './store-events.service.ts'
import {
  addSecret,
  resealSecret,
  retireSecret,
  secretFingerprints,
  secretTaken,
} from './store-secrets.service.ts'
import {
  allStoreIds,
  claimsOnDomain,
  countStoresInUse,
  deleteSecrets,
  hostsOf,
  ownStore,
  type StoreRow,
  secretsOf,
  storesById,
  storesOf,
} from './stores.store.ts'
import { dropCachedClaims, MAX_CLAIMS_PER_DOMAIN } from './webhook-claims.service.ts'

export {
  lockStores,
  noteRefusalSteps,
  refusedStores,
  type StoreRow,
  siblingStores,
  storeIdsOfMerchant,
  storesById as getStoresById,
} from './stores.store.ts'

export const MAX_STORES = 10
/** Each webhook may be tried against every former secret, so quick rotations must not pile up. */
const MAX_FORMER_SECRETS = 3

/** Ends one of these claims on a domain in favor of another merchant's. Returns whether it did. */
type MakeRoom = (
  platform: Platform,
  tx: Tx,
  claims: readonly StoreRow[],
  merchantId: string,
) => Promise<boolean>

const keepAll: MakeRoom = () => Promise.resolve(false)

/**
 * Connects a merchant's store by its host name (lower case), beside other merchants' claims on it: merchants type their own
 * secrets, so a signature proves no ownership. A store that this merchant removed earlier comes back as the same row, so that an
 * order which it reported cannot be reported again under a new store.
 * Refuses with `store_taken` (this merchant has connected it), `secret_taken`, `quota_exceeded` (the merchant has too many stores, or
 * the domain too many claims and `makeRoom` finds none to end), `conflict` (an operator released the merchant's claim), and `rate_limited`
 * after too many taken secrets.
 */
export async function connectStore(
  platform: Platform,
  merchantId: string,
  input: { shop_domain: string; webhook_secret: string },
  makeRoom: MakeRoom = keepAll,
): Promise<StoreRow> {
  const domain = input.shop_domain
  const connected = await refusingDuplicates(platform, merchantId, async (tx) => {
    await checkQuota(tx, merchantId, {
      most: MAX_STORES,
      count: () => countStoresInUse(tx, merchantId),
      detail: `At most ${MAX_STORES} stores per account. Remove one before you connect another.`,
    })
    await advisoryLock(tx, domainLock(domain))
    if (!(await mayClaim(platform, tx, merchantId, domain, makeRoom))) return null
    const [former] = await lockRows(tx, 'stores', { shop_domain: domain, merchant_id: merchantId })
    const before = former ? stateOf(former) : null
    const fresh = { removed_at: null, connected_at: platform.clock.now(), ...NOTHING_RECEIVED }
    const created = { merchant_id: merchantId, shop_domain: domain, created_at: fresh.connected_at }
    const store = former ?? (await insertRow(tx, 'stores', { id: platform.ids.next(), ...created, ...fresh }))
    if (former) await changeRow(tx, 'stores', former, fresh)
    await addSecret(platform, tx, store, input.webhook_secret)
    await recordAudit(platform, tx, {
      ...storeAction(merchantId, 'store.connect', store),
      before,
      after: stateOf(store),
    })
    dropCachedClaims(platform, tx, store)
    return store
  })
  return connected ?? refuseFullDomain(domain)
}

/** The merchant's stores in use, newest first; with `null` every merchant's, removed ones too, for operators. */
export function listStores({ database }: Platform, merchantId: string | null, page: PageRequest) {
  return pageById(page, (request) => storesOf(database.reader, merchantId, request))
}

/** One of the merchant's stores in use. Refuses with `not_found`. */
export async function getStore(platform: Platform, merchantId: string, storeId: string): Promise<StoreRow> {
  const store = await ownStore(platform.database.reader, merchantId, storeId)
  if (!store) throw storeNotFound()
  return store
}

/**
 * Gives a store a new webhook secret. The replaced one stays valid for 24 hours, but for `revokeFormer`, which ends every former secret at
 * once. With the present secret, only that has an effect; one of the store's former secrets becomes the present one again. Refuses with
 * `not_found`, `secret_taken`, and `rate_limited` after too many taken secrets.
 */
export function rotateSecret(
  platform: Platform,
  merchantId: string,
  storeId: string,
  change: NewSecret,
): Promise<StoreRow> {
  return refusingDuplicates(platform, merchantId, async (tx) => {
    await lockAccount(tx, merchantId)
    const store = await lockOwnStore(tx, merchantId, storeId)
    await replaceSecret(platform, tx, store, change)
    return store
  })
}

interface NewSecret {
  secret: string
  revokeFormer?: boolean | undefined
}

async function replaceSecret(
  platform: Platform,
  tx: Tx,
  store: StoreRow,
  { secret, revokeFormer = false }: NewSecret,
): Promise<void> {
  const secrets = await secretsOf(tx, [store.id])
  const fingerprints = secretFingerprints(platform, secret)
  const present = secrets.find((row) => row.valid_until === null)
  const replaced = present === undefined || !fingerprints.includes(present.fingerprint)
  const former = secrets.filter((row) => row !== present && !fingerprints.includes(row.fingerprint))
  if (!replaced && !(revokeFormer && former.length > 0)) return
  const dropped = revokeFormer ? former : replaced ? former.slice(MAX_FORMER_SECRETS - 1) : []
  await deleteSecrets(tx, dropped)
  if (replaced) {
    if (present && revokeFormer) await deleteSecrets(tx, [present])
    else if (present) await retireSecret(platform, tx, present)
    await addSecret(platform, tx, store, secret)
  }
  const former_secrets = (await secretsOf(tx, [store.id])).length - 1
  await recordAudit(platform, tx, {
    ...storeAction(store.merchant_id, 'store.rotate_secret', store),
    before: { ...stateOf(store), former_secrets: secrets.length - 1 },
    after: { ...stateOf(store), former_secrets, replaced, revoked_former: revokeFormer },
  })
  dropCachedClaims(platform, tx, store)
}

/**
 * Moves a claim to another name of its shop, since Shopify lets a shop change its `.myshopify.com` name, and gives it a new secret if there is
 * one, in one transaction. Secrets and sales stay, and with them the knowledge which orders have been reported; deliveries with the former
 * name still reach the claim. Refuses with `not_found`, `store_taken` (this merchant has connected that name), `quota_exceeded` (it has too
 * many claims), `conflict` (an operator released the merchant's claim on it), and as `rotateSecret`.
 */
export async function moveStore(
  platform: Platform,
  merchantId: string,
  storeId: string,
  { domain, secret, revokeFormer }: { domain: string } & Partial<NewSecret>,
  makeRoom: MakeRoom = keepAll,
): Promise<StoreRow> {
  const moved = await refusingDuplicates(platform, merchantId, async (tx) => {
    // The account before domains, and these before their claims, as `connectStore` locks them.
    if (secret !== undefined) await lockAccount(tx, merchantId)
    const known = await ownStore(tx, merchantId, storeId)
    if (!known) throw storeNotFound()
    for (const name of [known.shop_domain, domain].sort()) await advisoryLock(tx, domainLock(name))
    const store = await lockOwnStore(tx, merchantId, storeId)
    const isThere = store.shop_domain === domain
    if (!isThere && !(await mayClaim(platform, tx, merchantId, domain, makeRoom))) return null
    if (!isThere) await moveClaim(platform, tx, store, domain)
    if (secret !== undefined) await replaceSecret(platform, tx, store, { secret, revokeFormer })
    return store
  })
  return moved ?? refuseFullDomain(domain)
}

async function moveClaim(platform: Platform, tx: Tx, store: StoreRow, domain: string): Promise<void> {
  const secrets = await secretsOf(tx, [store.id])
  const before = stateOf(store)
  dropCachedClaims(platform, tx, store)
  const moved = { shop_domain: domain, former_domain: store.shop_domain }
  const change = { ...moved, connected_at: platform.clock.now(), ...NOTHING_RECEIVED }
  await changeRow(tx, 'stores', store, change)
  for (const row of secrets) await resealSecret(platform, tx, row, domain)
  await recordAudit(platform, tx, {
    ...storeAction(store.merchant_id, 'store.move', store),
    before,
    after: { ...before, shop_domain: domain },
  })
  dropCachedClaims(platform, tx, store)
}

const NOTHING_RECEIVED = {
  first_event_at: null,
  last_refused_at: null,
  last_refusal: null,
  refused_since: null,
  refused_count: 0,
}

/**
 * Whether there is room for one more claim on a locked domain, or `makeRoom` ends another one; if not, the domain is flagged. Refuses with
 * `store_taken` and `conflict` as `connectStore` does.
 */
async function mayClaim(
  platform: Platform,
  tx: Tx,
  merchantId: string,
  domain: string,
  makeRoom: MakeRoom,
): Promise<boolean> {
  const claims = authentic(platform.keys, 'stores', await claimsOnDomain(tx, domain))
  const own = claims.filter((claim) => claim.merchant_id === merchantId)
  if (own.some((claim) => claim.removed_at === null)) throw storeTaken()
  if (own.some((claim) => claim.released_at !== null)) {
    const detail = `An operator released your claim on ${domain}. Ask the operator to allow it again.`
    throw new Refusal('conflict', detail)
  }
  const inUse = claims.filter((claim) => claim.removed_at === null)
  if (inUse.length < MAX_CLAIMS_PER_DOMAIN || (await makeRoom(platform, tx, inUse, merchantId))) return true
  // The flag is committed although the merchant is refused, who may own the shop.
  const what = `${domain} has ${MAX_CLAIMS_PER_DOMAIN} claims, and another merchant was refused.`
  await flagDomain(platform, tx, domain, what, inUse, { refused_merchant_id: merchantId })
  return false
}

/** Why a domain takes no further claim, for the merchant. */
export function fullDomainDetail(domain: string): string {
  return `${domain} has ${MAX_CLAIMS_PER_DOMAIN} claims already. If the shop is yours, ask the operator to release the others, or try again in a day: a claim without a signed delivery makes room then.`
}

function refuseFullDomain(domain: string): never {
  throw new Refusal('quota_exceeded', fullDomainDetail(domain))
}

/** The merchant's store in use, locked until the transaction ends. Refuses with `not_found`. */
export async function lockOwnStore(tx: Tx, merchantId: string, storeId: string): Promise<StoreRow> {
  const key = { id: storeId, merchant_id: merchantId, removed_at: null }
  const [store] = await lockRows(tx, 'stores', key)
  if (!store) throw storeNotFound()
  return store
}

/** Whether the merchant has a store in use, which offers need to go live. */
export async function merchantHasStore(db: Queries | Tx, merchantId: string): Promise<boolean> {
  return (await countStoresInUse(db, merchantId)) > 0
}

/** The advisory lock on whether a merchant has a store. */
export function merchantStoresLock(merchantId: string): string {
  return `stores of merchant ${merchantId}`
}

/**
 * The shop domains of a merchant's stores in use, and the host names that their signed orders have shown. A store that was changed in the
 * database has none.
 */
export async function hostsOfMerchant({ keys }: Platform, tx: Tx, merchantId: string) {
  const stores = await storesOf(tx, merchantId, { before: null, limit: MAX_STORES })
  const authenticStores = stores.filter((store) => rowProblem(keys, 'stores', store) === null)
  return {
    shopDomains: authenticStores.map((store) => store.shop_domain),
    shown: authenticStores.flatMap(hostsOf),
  }
}

/** Shop domains by store id. */
export async function shopDomainsOf(db: Queries, storeIds: readonly string[]) {
  const stores = await storesById(db, storeIds)
  return new Map([...stores].map(([id, store]) => [id, store.shop_domain]))
}

/** The stores with this id or shop domain, removed ones too. */
export async function claimsOf(db: Queries, idOrDomain: string): Promise<StoreRow[]> {
  const text = plainShopDomain(idOrDomain)
  return isId(text) ? [...(await storesById(db, [text])).values()] : claimsOnDomain(db, text)
}

/** The ids of `claimsOf`, or of every store for `null`. The indexes of orders begin with their store. */
export async function storeIdsOf(db: Queries, idOrDomain: string | null): Promise<string[]> {
  return idOrDomain === null ? allStoreIds(db) : (await claimsOf(db, idOrDomain)).map((store) => store.id)
}

/** The common fields of an audit entry about a store. */
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

/** Turns a broken unique constraint into a refusal: two transactions can add one secret, or one merchant's claim, at the same time. */
async function refusingDuplicates<T>(platform: Platform, merchantId: string, work: (tx: Tx) => Promise<T>) {
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

export function storeNotFound(): Refusal {
  return new Refusal('not_found', 'Store not found.')
}
