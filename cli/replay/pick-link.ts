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
 * The link that was named, else the newest active one whose merchant has a store; `null` if there is none. With `payable` one whose creator
 * has a payout destination comes first.
 */
export async function pickLink(
  app: App,
  options: Pick<ReplayOptions, 'link' | 'store'>,
  { payable = false } = {},
): Promise<PickedLink | null> {
  if (options.link !== undefined) return { link: await resolveLink(app.platform, options.link), among: 1 }
  const links = await newestLinks(app.platform, MOST_LINKS)
  const fitting: ShownLink[] = []
  for (const link of links) {
    if (link.active && (await sellsAt(app, link.merchant_id, options.store))) fitting.push(link)
  }
  const destinations = payable
    ? await destinationsInForce(
        app.database.reader,
        fitting.map(({ creator_id: creatorId }) => creatorId),
        app.platform.clock.now(),
      )
    : new Map()
  const link = fitting.find(({ creator_id: creatorId }) => destinations.has(creatorId)) ?? fitting[0]
  return link ? { link, among: fitting.length } : null
}

async function sellsAt({ platform }: App, merchantId: string, store: string | undefined): Promise<boolean> {
  const { items } = await listStores(platform, merchantId, { limit: 100 })
  const named = store?.toLowerCase()
  return items.some((one) => named === undefined || named === one.id || named === one.shop_domain)
}

/** Says why `pickLink` found none. */
export async function noLink({ platform }: App, store: string | undefined): Promise<Failure> {
  const links = await newestLinks(platform, MOST_LINKS)
  return new Failure(problemWith(links, store), { code: 'not_found' })
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
