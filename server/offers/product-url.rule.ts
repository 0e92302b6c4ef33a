export const MAX_PRODUCT_URL_LENGTH = 2048

export type ProductUrlCheck = { ok: true; url: string } | { ok: false; message: string }

/**
 * Top-level domains without public hosts: RFC 2606, 6761, 6762 (with appendix G), 7686, 8375 and 9476, and the names that ICANN
 * reserves for private use. `example.com` is an ordinary registered name and allowed.
 */
const PRIVATE_DOMAINS = new Set(
  'alt arpa corp example home internal intranet invalid lan local localdomain localhost mail onion private test'.split(
    ' ',
  ),
)

const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const LAST_LABEL = /^(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops some of them silently
const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f\\]/

/**
 * Checks the address that an offer's links lead to: https on the standard port, a public host name (no IP address in any notation,
 * no single label, no reserved name), no credentials, at most 2048 characters.
 *
 * Returns the address as the URL standard serializes it, in ASCII (host as xn--, other characters percent-encoded), fit for a Location
 * header. The message completes "product_url ...".
 */
export function checkProductUrl(text: string): ProductUrlCheck {
  const given = text.trim()
  if (given.length > MAX_PRODUCT_URL_LENGTH)
    return refused(`must have at most ${MAX_PRODUCT_URL_LENGTH} characters`)
  if (!/^https:\/\/[^/]/i.test(given)) return refused('must begin with https:// and a host name')
  if (UNSAFE_CHARACTER.test(given))
    return refused('must not contain spaces, control characters or backslashes')
  if (!URL.canParse(given)) return refused('is not a valid address')
  const url = new URL(given)
  if (url.username !== '' || url.password !== '') return refused('must not carry a user name or password')
  if (url.port !== '') return refused('must not name a port')
  if (!isPublicHostName(url.hostname)) return refused('must have a public host name')
  if (url.href.length > MAX_PRODUCT_URL_LENGTH) {
    return refused(`must have at most ${MAX_PRODUCT_URL_LENGTH} characters once percent-encoded`)
  }
  return { ok: true, url: url.href }
}

function refused(message: string): ProductUrlCheck {
  return { ok: false, message }
}

/**
 * `hostname` comes from the URL parser, which turns every notation of an IPv4 address into four decimal numbers: those fail on their
 * last label, IPv6 on its brackets.
 */
function isPublicHostName(hostname: string): boolean {
  const labels = hostname.split('.')
  const last = hostname.slice(hostname.lastIndexOf('.') + 1)
  return (
    hostname.length <= 253 &&
    labels.length >= 2 &&
    labels.every((label) => HOST_LABEL.test(label)) &&
    LAST_LABEL.test(last) &&
    !PRIVATE_DOMAINS.has(last)
  )
}

/**
 * The address with `parameter=reference` at the end of its query. Replaces a parameter of that name in any encoding; every other byte of
 * query and fragment stays, because shops may sign or compare addresses.
 */
export function withTrackingReference(url: string, parameter: string, reference: string): string {
  const [page, fragment] = splitAt(withoutTrackingReference(url, parameter), '#')
  const [address, query] = splitAt(page, '?')
  const added = `${encodeURIComponent(parameter)}=${encodeURIComponent(reference)}`
  return `${address}${query.length > 1 ? `${query}&` : '?'}${added}${fragment}`
}

/** The address without `parameter`, which a merchant may have pasted with it; every other byte stays. */
export function withoutTrackingReference(url: string, parameter: string): string {
  const [page, fragment] = splitAt(url, '#')
  const [address, query] = splitAt(page, '?')
  const pieces = query.slice(1).split('&')
  const others = pieces.filter((piece) => parameterName(piece) !== parameter)
  if (others.length === pieces.length) return url
  return `${address}${others.length > 0 ? `?${others.join('&')}` : ''}${fragment}`
}

/** Splits before the first `mark`, which the second part starts with; without a mark it is empty. */
function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}

/** The decoded name of a piece of a query, between two `&`. */
export function parameterName(piece: string): string {
  const end = piece.indexOf('=')
  const name = end === -1 ? piece : piece.slice(0, end)
  if (!/[%+]/.test(name)) return name
  // The leading "&" keeps URLSearchParams from dropping a "?" that belongs to the name.
  return new URLSearchParams(`&${name}`).keys().next().value ?? ''
}

/** The decoded names in an address' query. */
export function parameterNames(url: string): string[] {
  const [, query] = splitAt(splitAt(url, '#')[0], '?')
  return query.slice(1).split('&').map(parameterName)
}

/** The host name of a product address. */
export function productHostOf(productUrl: string): string {
  return new URL(productUrl).hostname
}

export interface ProductHostFacts {
  /** The host name of the offer's product address, lower case. */
  host: string
  /** The shop domains of the merchant's stores. */
  shopDomains: readonly string[]
  /** The host names that signed orders of these stores have shown. */
  shown: readonly string[]
}

/**
 * Whether a host name belongs to the merchant's shop: it is the shop domain of one of their stores or a subdomain of it, or signed orders
 * have shown it. A leading `www.` is ignored.
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
