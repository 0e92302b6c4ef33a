import { MAX_ENDPOINT_URL_LENGTH } from '../../../../shared/schemas/webhooks.ts'
import { isLoopbackHost } from '../../../platform/network/loopback.ts'
import { isPublicAddress } from '../../../platform/network/public-address.ts'

type EndpointUrlCheck = { ok: true; url: string } | { ok: false; message: string }

// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops some of them silently
const UNSAFE_CHARACTER = /[\u0000-\u0020\u007f\\]/

/** Ports of other services that speak no HTTP: the fetch standard's blocked ports. */
const BLOCKED_PORTS = [
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]
/** Databases, queues, file shares, remote desktops and control ports of clusters. */
const DATABASE_PORTS = [
  445, 1433, 1521, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5433, 5672, 5900, 5984, 6379, 6380, 6432, 9042,
  9092, 9200, 9300, 11211, 26257, 27017, 27018, 27019, 33060,
]
const REFUSED_PORTS = new Set([...BLOCKED_PORTS, ...DATABASE_PORTS].map(String))

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
  if (REFUSED_PORTS.has(url.port))
    return refused(`must not have the port ${url.port}, which other services use`)
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
