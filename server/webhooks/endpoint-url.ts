import { MAX_ENDPOINT_URL_LENGTH } from '../../shared/schemas/webhooks.ts'
import { isLoopbackHost } from '../platform/network/loopback.ts'
import { isPublicAddress } from '../platform/network/public-address.ts'

export type EndpointUrlCheck = { ok: true; url: string } | { ok: false; message: string }

// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops some of them silently
const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f\\]/

/**
 * Checks the address of a webhook endpoint: https, no credentials, no fragment, and no host that is known to be private. Names are resolved and
 * checked at each delivery. With `allowLoopback` http and https to this machine are accepted too. The message completes "url ...".
 */
export function checkEndpointUrl(
  text: string,
  { allowLoopback }: { allowLoopback: boolean },
): EndpointUrlCheck {
  const given = text.trim()
  if (UNSAFE_CHARACTER.test(given))
    return refused('must not contain spaces, control characters or backslashes')
  if (!URL.canParse(given)) return refused('must be an https address')
  const url = new URL(given)
  const isLocal = isLoopbackHost(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal && allowLoopback))
    return refused('must begin with https://')
  if (url.username !== '' || url.password !== '') return refused('must not carry a user name or password')
  if (url.hash !== '') return refused('must not have a fragment')
  if (isLocal ? !allowLoopback : !hasPublicHost(url)) return refused('must have a public host')
  if (url.href.length > MAX_ENDPOINT_URL_LENGTH)
    return refused(`must have at most ${MAX_ENDPOINT_URL_LENGTH} characters once percent-encoded`)
  return { ok: true, url: url.href }
}

/** The URL parser writes every notation of an IPv4 address as four decimal numbers. */
function hasPublicHost({ hostname }: URL): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  if (address !== hostname || /^[\d.]+$/.test(hostname)) return isPublicAddress(address)
  return /^[^.]+(?:\.[^.]+)+\.?$/.test(hostname) && !/\.(?:local|localhost|internal)\.?$/.test(hostname)
}

function refused(message: string): EndpointUrlCheck {
  return { ok: false, message }
}
