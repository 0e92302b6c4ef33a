import { closeFlag, findFlags, raiseFlag } from '../flags/flags.service.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { hostsOfMerchant } from '../stores/stores.service.ts'
import { findEveryOffer, type OfferRow } from './offers.store.ts'
import { isVerifiedHost, productHostOf } from './product-url.rule.ts'

/** Flags of a merchant that are looked at, the newest. */
const MOST_FLAGS = 100
const KIND = 'product_host_unverified'
/** Hosts that one flag lists; further ones are counted. */
const MAX_HOSTS_LISTED = 50

/** One use of an unverified host, as the flag's evidence lists it. */
interface HostUse {
  host: string
  offer_id: string
  offer_status: string
  /** The previous host of the live offer's links; `null` for a new use. */
  former_host: string | null
}

interface HostEvidence {
  hosts: HostUse[]
  further_hosts: number
}

/**
 * Flags an offer whose product address has a host that is neither the shop's nor shown by its signed orders: once for each merchant and
 * host, and whenever the host of a live offer changes, because existing links then lead there. Most shops have a domain of their own, so
 * until an order shows it only such a change is flagged: `recheckProductHosts` looks at the others. A merchant without a store is checked
 * when an offer goes live. `former` is the offer before the change, `null` for a new one.
 */
export async function flagUnverifiedHost(
  platform: Platform,
  tx: Tx,
  offer: OfferRow,
  former: OfferRow | null,
): Promise<void> {
  const { merchant_id: merchantId } = offer
  const host = productHostOf(offer.product_url)
  const hosts = await hostsOfMerchant(platform, tx, merchantId)
  if (hosts.shopDomains.length === 0 || isVerifiedHost({ host, ...hosts })) return
  const formerHost = former?.status === 'live' ? productHostOf(former.product_url) : host
  const use: HostUse = {
    host,
    offer_id: offer.id,
    offer_status: offer.status,
    former_host: formerHost === host ? null : formerHost,
  }
  if (hosts.shown.length === 0 && use.former_host === null) return
  await advisoryLock(tx, hostsLock(merchantId))
  const flags = await findFlags(tx, { kind: KIND, subjectId: merchantId }, { limit: MOST_FLAGS })
  const known = flags.flatMap((flag) => evidenceOf(flag).hosts)
  if (use.former_host === null && known.some((other) => other.host === host)) return
  const open = flags.find((flag) => flag.status === 'open')
  await raiseFlag(platform, tx, {
    kind: KIND,
    subjectType: 'user',
    subjectId: merchantId,
    summary:
      use.former_host === null
        ? `An offer leads to ${host}, which is not the shop's domain and which no signed order has shown.`
        : `A live offer's links now lead to ${host} instead of ${use.former_host}; no signed order has shown that host.`,
    evidence: { ...withUse(open ? evidenceOf(open) : { hosts: [], further_hosts: 0 }, use) },
  })
}

/** Live offers that are looked at, the newest. */
const MOST_OFFERS = 500

/**
 * After signed orders have shown another host of a merchant's shop: closes the flag about hosts that are verified now, and flags live offers
 * that lead elsewhere.
 */
export async function recheckProductHosts(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  await advisoryLock(tx, hostsLock(merchantId))
  const hosts = await hostsOfMerchant(platform, tx, merchantId)
  const subject = { kind: KIND, subjectType: 'user', subjectId: merchantId } as const
  const [open] = await findFlags(tx, { kind: KIND, subjectId: merchantId, status: 'open' }, { limit: 1 })
  const flagged = open && evidenceOf(open)
  if (flagged?.further_hosts === 0 && flagged.hosts.every(({ host }) => isVerifiedHost({ host, ...hosts }))) {
    await closeFlag(platform, tx, subject, 'Signed orders of the shop have shown the host.')
  }
  const every = { merchantId, status: 'live', above: null, before: null, limit: MOST_OFFERS } as const
  const byHost = Map.groupBy(await findEveryOffer(tx, every), (offer) => productHostOf(offer.product_url))
  for (const [offer] of byHost.values()) {
    if (offer) await flagUnverifiedHost(platform, tx, offer, null)
  }
}

function hostsLock(merchantId: string): string {
  return `product hosts of merchant ${merchantId}`
}

function evidenceOf(flag: { evidence: string }): HostEvidence {
  return JSON.parse(flag.evidence) as HostEvidence
}

function withUse({ hosts, further_hosts }: HostEvidence, use: HostUse): HostEvidence {
  const others = hosts.filter((other) => other.offer_id !== use.offer_id || other.host !== use.host)
  return others.length < MAX_HOSTS_LISTED
    ? { hosts: [...others, use], further_hosts }
    : { hosts, further_hosts: further_hosts + 1 }
}
