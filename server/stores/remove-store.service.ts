import { recordAudit } from '../moderation/audit.service.ts'
import { pauseLiveOffers } from '../offers/pause-offers.service.ts'
import type { Tx } from '../platform/database.ts'
import { lockName } from '../platform/named-lock.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import {
  merchantHasStore,
  merchantStoresLock,
  noSuchStore,
  type StoreRow,
  stateOf,
  storeAction,
} from './stores.service.ts'
import { claimsOnDomain, clearReleased, deleteSecretsOf, lockOwnStore, retireStore } from './stores.store.ts'
import { forgetClaims } from './webhook-claims.service.ts'

/** A store that is out of use, and how many live offers of its merchant were paused, because no other store is left to report sales. */
export interface RemovedStore {
  store: StoreRow
  offersPaused: number
}

/**
 * Removes a merchant's store and its secrets; its sales stay. The last one pauses the merchant's live offers. Refuses with
 * `not_found`, also the second time.
 */
export function removeStore(platform: Platform, merchantId: string, storeId: string): Promise<RemovedStore> {
  return platform.database.transaction(async (tx) => {
    await lockName(tx, merchantStoresLock(merchantId))
    const store = await lockOwnStore(tx, merchantId, storeId)
    if (!store) throw noSuchStore()
    return takeOutOfUse(platform, tx, store, { actor: merchantId, action: 'store.remove', reason: null })
  })
}

/** What an operator decides about one merchant's claim on a shop domain. */
export interface ClaimDecision {
  domain: string
  merchantId: string
  /** A user's id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

/** The claims in use on a domain, oldest first, for operators. */
export async function claimsInUse(platform: Platform, domain: string): Promise<StoreRow[]> {
  const claims = await claimsOnDomain(platform.database.reader, plainDomain(domain))
  return claims.filter((claim) => claim.removed_at === null)
}

/**
 * Takes a merchant's claim on a domain out of use. The merchant cannot connect the domain again until `allowClaim`. Refuses with
 * `not_found` when the merchant has no claim in use on it.
 */
export function releaseClaim(platform: Platform, decision: ClaimDecision): Promise<RemovedStore> {
  const { merchantId, actor, reason } = decision
  return platform.database.transaction(async (tx) => {
    await lockName(tx, merchantStoresLock(merchantId))
    const claims = await claimsOnDomain(tx, plainDomain(decision.domain))
    const claim = claims.find((row) => row.merchant_id === merchantId && row.removed_at === null)
    if (!claim) throw noSuchStore()
    return takeOutOfUse(platform, tx, claim, { actor, action: 'store.release', reason })
  })
}

/** Lets a merchant connect a domain again after `releaseClaim`. Refuses with `not_found` when no claim of theirs on it was released. */
export function allowClaim(platform: Platform, decision: ClaimDecision): Promise<StoreRow> {
  const { merchantId, actor, reason } = decision
  return platform.database.transaction(async (tx) => {
    const [store] = await clearReleased(tx, merchantId, plainDomain(decision.domain))
    if (!store) throw new Refusal('not_found', 'No claim of this merchant on this domain was released.')
    await recordAudit(platform, tx, {
      ...storeAction(actor, 'store.allow', store, reason),
      before: { ...stateOf(store), released: true },
      after: stateOf(store),
    })
    return store
  })
}

async function takeOutOfUse(
  platform: Platform,
  tx: Tx,
  store: StoreRow,
  by: { actor: string; action: 'store.remove' | 'store.release'; reason: string | null },
): Promise<RemovedStore> {
  const now = platform.clock.now()
  const released = by.action === 'store.release'
  if (!(await retireStore(tx, store.id, now, released))) throw noSuchStore()
  await deleteSecretsOf(tx, store.id)
  const retired: StoreRow = { ...store, removed_at: now, released_at: released ? now : store.released_at }
  const isLast = !(await merchantHasStore(tx, store.merchant_id))
  const offersPaused = isLast
    ? await pauseLiveOffers(platform, tx, store.merchant_id, {
        actor: by.actor,
        reason: `The merchant's last store, ${store.shop_domain}, is out of use.`,
      })
    : 0
  await recordAudit(platform, tx, {
    ...storeAction(by.actor, by.action, store, by.reason),
    before: stateOf(store),
    after: { ...stateOf(retired), offers_paused: offersPaused },
  })
  forgetClaims(platform, tx, store.shop_domain)
  return { store: retired, offersPaused }
}

function plainDomain(text: string): string {
  return text.trim().toLowerCase()
}
