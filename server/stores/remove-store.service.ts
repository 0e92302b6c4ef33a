import { DAY_MS } from '../../shared/durations.ts'
import { plainShopDomain } from '../../shared/schemas/stores.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { pauseLiveOffers } from '../offers/offers.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import { changeRow, lockRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { flagDomain } from './store-events.service.ts'
import {
  lockOwnStore,
  merchantHasStore,
  merchantStoresLock,
  type StoreRow,
  stateOf,
  storeAction,
  storeNotFound,
} from './stores.service.ts'
import { claimsInUse as claimsOn, deleteSecrets, secretsOf } from './stores.store.ts'
import { dropCachedClaims } from './webhook-claims.service.ts'

/** A store that is out of use. `offersPaused` counts the merchant's live offers that were paused because it was the last store. */
interface RemovedStore {
  store: StoreRow
  offersPaused: number
}

/**
 * Removes a merchant's store and its secrets; its sales stay. Removing the last store pauses the merchant's live offers.
 * Refuses with `not_found`, also when the store was removed already.
 */
export function removeStore(platform: Platform, merchantId: string, storeId: string): Promise<RemovedStore> {
  return platform.database.transaction(async (tx) => {
    await advisoryLock(tx, merchantStoresLock(merchantId))
    const store = await lockOwnStore(tx, merchantId, storeId)
    return takeOutOfUse(platform, tx, store, { actor: merchantId, action: 'store.remove', reason: null })
  })
}

/** An operator's decision about one merchant's claim on a shop domain. */
interface ClaimDecision {
  domain: string
  merchantId: string
  /** A user's id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

/** The claims in use on a domain, oldest first, for operators. */
export function claimsInUse({ database }: Platform, domain: string) {
  return claimsOn(database.reader, plainShopDomain(domain))
}

/**
 * Takes a merchant's claim on a domain out of use. The merchant cannot connect the domain again until `allowClaim`.
 * Refuses with `not_found` when the merchant has no claim in use on it.
 */
export function releaseClaim(platform: Platform, decision: ClaimDecision): Promise<RemovedStore> {
  const { merchantId, actor, reason } = decision
  return platform.database.transaction(async (tx) => {
    await advisoryLock(tx, merchantStoresLock(merchantId))
    const claimed = { shop_domain: plainShopDomain(decision.domain), merchant_id: merchantId }
    const [claim] = await lockRows(tx, 'stores', { ...claimed, removed_at: null })
    if (!claim) throw storeNotFound()
    return takeOutOfUse(platform, tx, claim, { actor, action: 'store.release', reason })
  })
}

/** Lets a merchant connect a domain again after `releaseClaim`. Refuses with `not_found` when no claim of theirs on it was released. */
export function allowClaim(platform: Platform, decision: ClaimDecision): Promise<StoreRow> {
  const { merchantId, actor, reason } = decision
  return platform.database.transaction(async (tx) => {
    const claimed = { shop_domain: plainShopDomain(decision.domain), merchant_id: merchantId }
    const [store] = await lockRows(tx, 'stores', claimed)
    if (!store || store.released_at === null)
      throw new Refusal('not_found', 'No claim of this merchant on this domain was released.')
    const before = stateOf(store)
    await changeRow(tx, 'stores', store, { released_at: null })
    await recordAudit(platform, tx, {
      ...storeAction(actor, 'store.allow', store, reason),
      before,
      after: stateOf(store),
    })
    return store
  })
}

/** For this long a claim holds its place on a full domain without a signed delivery, ms. */
const UNPROVED_FOR_MS = DAY_MS

/**
 * For a further claim of a merchant on a domain that is full: ends the oldest claim that has received no signed event, if it was first made a
 * day ago, and flags the domain. Returns whether there was one.
 */
export async function makeRoom(
  platform: Platform,
  tx: Tx,
  claims: readonly StoreRow[],
  merchantId: string,
): Promise<boolean> {
  const madeBefore = platform.clock.now() - UNPROVED_FOR_MS
  const oldest = claims.find((claim) => claim.first_event_at === null && claim.created_at <= madeBefore)
  if (!oldest) return false
  await advisoryLock(tx, merchantStoresLock(oldest.merchant_id))
  const [claim] = await lockRows(tx, 'stores', { id: oldest.id, removed_at: null, first_event_at: null })
  if (!claim) return false
  const reason = `No signed delivery proved it, and ${claims.length} claims are the most for a domain.`
  await takeOutOfUse(platform, tx, claim, { actor: merchantId, action: 'store.displace', reason })
  const what = `${claim.shop_domain} had ${claims.length} claims: one without a signed delivery made room for another.`
  await flagDomain(platform, tx, claim.shop_domain, what, claims)
  return true
}

async function takeOutOfUse(
  platform: Platform,
  tx: Tx,
  store: StoreRow,
  by: { actor: string; action: 'store.remove' | 'store.release' | 'store.displace'; reason: string | null },
): Promise<RemovedStore> {
  const before = stateOf(store)
  const removed_at = platform.clock.now()
  const isReleased = by.action === 'store.release'
  await changeRow(tx, 'stores', store, { removed_at, ...(isReleased && { released_at: removed_at }) })
  await deleteSecrets(tx, await secretsOf(tx, [store.id]))
  const isLast = !(await merchantHasStore(tx, store.merchant_id))
  const reason = `The merchant's last store, ${store.shop_domain}, is out of use.`
  const offersPaused = isLast
    ? await pauseLiveOffers(platform, tx, store.merchant_id, { actor: by.actor, reason })
    : 0
  await recordAudit(platform, tx, {
    ...storeAction(by.actor, by.action, store, by.reason),
    before,
    after: { ...stateOf(store), offers_paused: offersPaused },
  })
  dropCachedClaims(platform, tx, store)
  return { store, offersPaused }
}
