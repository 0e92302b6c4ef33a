/** The host name that an offer's links lead to. */
export function productHostOf(productUrl: string): string {
  return new URL(productUrl).hostname
}

export interface ProductHostFacts {
  /** The host name of the offer's product address, lower case. */
  host: string
  /** The shop domains of the merchant's stores. */
  shopDomains: readonly string[]
  /** The host names that validly signed orders of these stores have shown. */
  shown: readonly string[]
}

/**
 * Whether a host name is known to belong to the merchant's shop: it is the shop domain of one of their stores or a subdomain of it, or
 * signed orders have shown it. A leading `www.` makes no difference.
 */
export function isVerifiedHost({ host, shopDomains, shown }: ProductHostFacts): boolean {
  const name = withoutWww(host)
  return (
    shopDomains.some((domain) => name === withoutWww(domain) || name.endsWith(`.${withoutWww(domain)}`)) ||
    shown.some((other) => name === withoutWww(other))
  )
}

function withoutWww(host: string): string {
  return host.startsWith('www.') ? host.slice('www.'.length) : host
}
