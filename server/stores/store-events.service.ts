import { raiseFlag } from '../flags/flags.service.ts'
import { originsOf } from '../inbox/operator-deliveries.service.ts'
import { isoTime } from '../platform/clock.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { claimsInUse, hostsOf, lockStores, markFirstEvent, type StoreRow, setHosts } from './stores.store.ts'

/** The advisory lock on the claims on a domain. */
export function domainLock(domain: string): string {
  return `shop domain ${domain}`
}

/**
 * Records the first signed event of each store that had none, and flags a domain when a second claim on it receives
 * events. An event's scope is the store's id. Events that an operator sent do not count.
 */
export async function noteFirstEvents(
  platform: Platform,
  tx: Tx,
  stores: ReadonlyMap<string, StoreRow>,
  events: readonly { id: string; scope: string }[],
): Promise<void> {
  const ofNewStores = events.filter(({ scope }) => {
    const store = stores.get(scope)
    return store !== undefined && store.first_event_at === null && store.removed_at === null
  })
  const receivingIds = new Set((await sentByStores(tx, ofNewStores)).map(({ scope }) => scope))
  const receiving = [...receivingIds].flatMap((id) => stores.get(id) ?? [])
  const domains = [...new Set(receiving.map((store) => store.shop_domain))].sort()
  for (const domain of domains) {
    await advisoryLock(tx, domainLock(domain))
    const ids = receiving.filter((store) => store.shop_domain === domain).map(({ id }) => id)
    const marked = await markFirstEvent(tx, ids, platform.clock.now())
    if (marked.length > 0) await flagSharedDomain(platform, tx, domain)
  }
}

/** The events that the stores themselves sent. */
async function sentByStores<Event extends { id: string }>(tx: Tx, events: readonly Event[]) {
  if (events.length === 0) return []
  const sources = events.map(({ id }) => ({ id, source: 'store' }) as const)
  const origins = await originsOf(tx, sources)
  return events.filter(({ id }) => origins.get(id) === 'store')
}

async function flagSharedDomain(platform: Platform, tx: Tx, domain: string): Promise<void> {
  const receiving = (await claimsInUse(tx, domain)).filter((claim) => claim.first_event_at !== null)
  if (receiving.length < 2) return
  const what = `${receiving.length} merchants receive signed events for ${domain}.`
  await flagDomain(platform, tx, domain, what, receiving)
}

/** Flags a domain with these claims on it, for an operator to find out who owns the shop. */
export function flagDomain(
  platform: Platform,
  tx: Tx,
  domain: string,
  what: string,
  claims: readonly StoreRow[],
  refused: { refused_merchant_id?: string } = {},
): Promise<void> {
  const shown = claims.map(({ id, merchant_id, created_at, first_event_at }) => ({
    store_id: id,
    merchant_id,
    connected_at: isoTime(created_at),
    first_event_at: isoTime(first_event_at),
  }))
  return raiseFlag(platform, tx, {
    kind: 'domain_shared',
    subjectType: 'shop_domain',
    subjectId: domain,
    summary: `${what} Release the claims of those who do not own the shop.`,
    evidence: { shop_domain: domain, ...refused, claims: shown },
  })
}

/** Orders show a shop's own domains and its checkout's: rarely more than a few. */
const MAX_HOSTS_PER_STORE = 20

/** The host names that a signed order shows. */
interface HostReport {
  id: string
  scope: string
  hosts: readonly string[]
}

/**
 * Remembers the host names that signed orders show, up to 20 for each store. Orders that an operator sent do not count. Returns the
 * merchants whose stores have shown a new one.
 */
export async function learnHosts(
  { keys }: Platform,
  tx: Tx,
  stores: ReadonlyMap<string, StoreRow>,
  reports: readonly HostReport[],
): Promise<Set<string>> {
  const learning = reports.filter(({ scope, hosts }) => {
    const store = stores.get(scope)
    if (!store || store.removed_at !== null || freshHosts(store, hosts).length === 0) return false
    return rowProblem(keys, 'stores', store) === null
  })
  const sent = Map.groupBy(await sentByStores(tx, learning), ({ scope }) => scope)
  const merchantIds = new Set<string>()
  // In one order, so that two workers cannot wait for each other.
  for (const store of sent.size === 0 ? [] : await lockStores(tx, [...sent.keys()].sort())) {
    const shown = (sent.get(store.id) ?? []).flatMap(({ hosts }) => hosts)
    const fresh = freshHosts(store, shown)
    if (fresh.length === 0) continue
    await setHosts(tx, store, [...hostsOf(store), ...fresh])
    merchantIds.add(store.merchant_id)
  }
  return merchantIds
}

/** What of these hosts is to be remembered. */
function freshHosts(store: StoreRow, shown: readonly string[]): string[] {
  const known = hostsOf(store)
  const fresh = [...new Set(shown)].filter((host) => !known.includes(host))
  return fresh.slice(0, MAX_HOSTS_PER_STORE - known.length)
}
