export const MAX_PRODUCT_URL_LENGTH = 2048

export type ProductUrlCheck = { ok: true; url: string } | { ok: false; message: string }

/**
 * Last labels under which no public web shop can ever be: RFC 2606, 6761, 6762 (with the private names of its
 * appendix G), 7686, 8375 and 9476, and the names that ICANN has set aside for private use. `example.com` and its
 * like are ordinary registered names and stay allowed.
 */
const NEVER_PUBLIC = new Set([
  'alt',
  'arpa',
  'corp',
  'example',
  'home',
  'internal',
  'intranet',
  'invalid',
  'lan',
  'local',
  'localdomain',
  'localhost',
  'mail',
  'onion',
  'private',
  'test',
])

const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const LAST_LABEL = /^(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops some of them silently, so they must be seen here
const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f\\]/

/**
 * Checks the address that visitors of an offer's links are sent to: https on the standard port, a public host name
 * (no address literal in any notation, no single label, no reserved name), no credentials, at most 2048 characters.
 *
 * Answers the address as the URL standard writes it: ASCII only (host in its xn-- form, other characters percent-encoded),
 * so that it fits a Location header as it stands. The message completes "product_url ...".
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
 * `hostname` comes from the URL parser, which has turned every notation of an IPv4 address (octal, hexadecimal, one number,
 * fullwidth digits) into four decimal numbers: those fail on their last label, IPv6 on its brackets.
 */
function isPublicHostName(hostname: string): boolean {
  const labels = hostname.split('.')
  const last = hostname.slice(hostname.lastIndexOf('.') + 1)
  return (
    hostname.length <= 253 &&
    labels.length >= 2 &&
    labels.every((label) => HOST_LABEL.test(label)) &&
    LAST_LABEL.test(last) &&
    !NEVER_PUBLIC.has(last)
  )
}

/**
 * The address with `parameter=reference` added at the end of its query. A parameter of that name that was there is
 * replaced, in whatever encoding it was written; every other byte of the query and the fragment stays as it is,
 * because shops sign or compare addresses and a re-encoded one may not be the same to them.
 */
export function withTrackingReference(url: string, parameter: string, reference: string): string {
  const [beforeFragment, fragment] = splitAt(url, '#')
  const [address, query] = splitAt(beforeFragment, '?')
  const others = query
    .slice(1)
    .split('&')
    .filter((piece) => !isNamed(piece, parameter))
    .join('&')
  const added = `${encodeURIComponent(parameter)}=${encodeURIComponent(reference)}`
  return `${address}?${others === '' ? added : `${others}&${added}`}${fragment}`
}

/** Splits before the first `mark`; the second part keeps it, and is empty where there is none. */
function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}

function isNamed(piece: string, parameter: string): boolean {
  const [name] = splitAt(piece, '=')
  if (!/[%+]/.test(name)) return name === parameter
  // The leading "&" keeps URLSearchParams from dropping a "?" that belongs to the name.
  return new URLSearchParams(`&${name}`).has(parameter)
}
