import { originsOf } from '../inbox/operator-deliveries.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import { toWireTime } from '../platform/clock.ts'
import type { Tx } from '../platform/database.ts'
import { lockName } from '../platform/named-lock.ts'
import type { Platform } from '../platform/platform.ts'
import { claimsOnDomain, markFirstEvent, type StoreRow } from './stores.store.ts'

/** The lock on which claims a domain has. */
export function domainLock(domain: string): string {
  return `shop domain ${domain}`
}

/** A signed event of a store, as far as it tells that the store receives. */
export interface StoreEvent {
  id: string
  scope: string
}

/**
 * Notes the first signed event of each claim among `stores` that has received none, and flags the domain as soon as a second claim on
 * it receives. Events that an operator sent tell nothing about the store.
 */
export async function noteFirstEvents(
  platform: Platform,
  tx: Tx,
  stores: ReadonlyMap<string, StoreRow>,
  events: readonly StoreEvent[],
): Promise<void> {
  const ofNewStores = events.filter(({ scope }) => {
    const store = stores.get(scope)
    return store !== undefined && store.first_event_at === null && store.removed_at === null
  })
  if (ofNewStores.length === 0) return
  const origins = await originsOf(
    tx,
    ofNewStores.map(({ id }) => ({ id, source: 'store' })),
  )
  const sent = new Set(ofNewStores.filter(({ id }) => origins.get(id) === 'store').map(({ scope }) => scope))
  const receiving = [...sent].flatMap((id) => stores.get(id) ?? [])
  const domains = [...new Set(receiving.map((store) => store.shop_domain))].sort()
  for (const domain of domains) {
    await lockName(tx, domainLock(domain))
    const ids = receiving.filter((store) => store.shop_domain === domain).map(({ id }) => id)
    const marked = await markFirstEvent(tx, ids, platform.clock.now())
    if (marked.length > 0) await flagSharedDomain(platform, tx, domain)
  }
}

async function flagSharedDomain(platform: Platform, tx: Tx, domain: string): Promise<void> {
  const receiving = (await claimsOnDomain(tx, domain)).filter(
    (claim) => claim.removed_at === null && claim.first_event_at !== null,
  )
  if (receiving.length < 2) return
  await raiseFlag(platform, tx, {
    kind: 'domain_shared',
    subjectType: 'shop_domain',
    subjectId: domain,
    summary: `${receiving.length} merchants receive signed events for ${domain}. Release the claims of those who do not own the shop.`,
    evidence: { shop_domain: domain, claims: receiving.map(claimEvidence) },
  })
}

/** Flags a domain that can take no further claim, since its owner may be the one who was refused. */
export async function flagFullDomain(
  platform: Platform,
  tx: Tx,
  domain: string,
  { merchantId, claims }: { merchantId: string; claims: number },
): Promise<void> {
  const inUse = (await claimsOnDomain(tx, domain)).filter((claim) => claim.removed_at === null)
  await raiseFlag(platform, tx, {
    kind: 'domain_shared',
    subjectType: 'shop_domain',
    subjectId: domain,
    summary: `${domain} has ${claims} claims, and another merchant was refused. Release the claims of those who do not own the shop.`,
    evidence: { shop_domain: domain, refused_merchant_id: merchantId, claims: inUse.map(claimEvidence) },
  })
}

function claimEvidence(claim: StoreRow) {
  return {
    store_id: claim.id,
    merchant_id: claim.merchant_id,
    connected_at: toWireTime(claim.created_at),
    first_event_at: claim.first_event_at === null ? null : toWireTime(claim.first_event_at),
  }
}
