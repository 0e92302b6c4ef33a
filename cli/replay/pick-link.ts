import type { App } from '../../server/app.ts'
import { newestLinks, resolveLink, type ShownLink } from '../../server/links/links.service.ts'
import { listStores } from '../../server/stores/stores.service.ts'
import { destinationsInForce } from '../../server/users/sealed-accounts.service.ts'
import { Failure } from '../failures.ts'
import type { ReplayOptions } from './session.ts'

const MOST_LINKS = 100

export interface PickedLink {
  link: ShownLink
  /** How many links there were to pick from; 1 for one that was named. */
  among: number
}

/**
 * The link that was named, else the newest active one whose merchant has a store; if there is none, why. With `payable` one whose creator
 * has a payout destination comes first.
 */
export async function pickLink(
  app: App,
  { link: slug, store }: Pick<ReplayOptions, 'link' | 'store'>,
  { payable }: { payable: boolean },
): Promise<PickedLink | Failure> {
  if (slug !== undefined) return { link: await resolveLink(app.platform, slug), among: 1 }
  const links = await newestLinks(app.platform, MOST_LINKS)
  const fitting: ShownLink[] = []
  for (const link of links) {
    if (link.active && (await sellsAt(app, link.merchant_id, store))) fitting.push(link)
  }
  const creators = payable ? fitting.map((link) => link.creator_id) : []
  const payees = await destinationsInForce(app.database.reader, creators, app.platform.clock.now())
  const link = fitting.find(({ creator_id: creatorId }) => payees.has(creatorId)) ?? fitting[0]
  return link
    ? { link, among: fitting.length }
    : new Failure(problemWith(links, store), { code: 'not_found' })
}

async function sellsAt({ platform }: App, merchantId: string, store: string | undefined): Promise<boolean> {
  const { items } = await listStores(platform, merchantId, { limit: 100 })
  const named = store?.toLowerCase()
  return items.some((one) => named === undefined || named === one.id || named === one.shop_domain)
}

function problemWith(links: readonly ShownLink[], store: string | undefined): string {
  if (links.length === 0) {
    return 'There is no affiliate link. Fill a new database with "affiliate seed", or make one as the README shows.'
  }
  if (!links.some((link) => link.active)) {
    return 'No affiliate link is active: its offer is not live, or a party is suspended. See "affiliate offers list".'
  }
  return store === undefined
    ? 'No merchant of an active link has a store. Connect one with POST /stores.'
    : `No active link belongs to the merchant of ${store}. Name a link with --link.`
}
