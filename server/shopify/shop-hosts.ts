import { shopDomain } from '../../shared/schemas/stores.ts'
import type { Fields } from './fields.ts'

const LONGEST_ADDRESS = 2048

/** The host names under which the order shows its shop: of the buyer's order page, and of the session's first page where that is a whole address. */
export function readShopHosts(order: Fields): string[] {
  const hosts = [order.order_status_url, order.landing_site].flatMap(hostIn)
  return [...new Set(hosts)]
}

function hostIn(value: unknown): string[] {
  if (typeof value !== 'string' || value.length > LONGEST_ADDRESS || !/^https?:\/\//i.test(value)) return []
  if (!URL.canParse(value)) return []
  const host = shopDomain.safeParse(new URL(value).hostname)
  return host.success ? [host.data] : []
}
