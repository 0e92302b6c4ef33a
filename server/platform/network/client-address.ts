import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

const V4_MAPPED = /^::ffff:(?=\d+\.)/i

/**
 * The address in one part of `X-Forwarded-For`. AWS and Azure can add the port, IPv6 then has brackets; some proxies quote it as in
 * `Forwarded` (RFC 7239), or write an IPv4 address as IPv6. What is no address is returned as it is.
 */
export function forwardedAddress(part: string): string {
  const text = part
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .replace(V4_MAPPED, '')
  const [, inBrackets, v4] = /^\[([^\]]+)\](?::\d+)?$|^(\d+(?:\.\d+){3}):\d+$/.exec(text) ?? []
  return (inBrackets ?? v4 ?? text).replace(/%.*$/, '').replace(V4_MAPPED, '')
}

/**
 * The key that counts a client address: an IPv4 address, or the /64 network of an IPv6 address, because one IPv6 customer has at least a
 * whole /64. All texts that are not addresses share one key.
 */
export function addressKey(address: string): string {
  return networkOf(address, 32, 64)
}

/** The part of an address that may be logged: its /24 (IPv4) or /48 (IPv6) network. */
export function addressPrefix(address: string): string {
  return networkOf(address, 24, 48)
}

function networkOf(text: string, v4Bits: 24 | 32, v6Bits: 48 | 64): string {
  const address = forwardedAddress(text)
  const family = isIP(address)
  if (family === 0) return 'unknown'
  if (family === 4) return v4Bits === 32 ? address : address.replace(/\.\d+$/, '.0/24')
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, v6Bits / 16)
  return `${groups.map((group) => group.toString(16)).join(':')}::/${v6Bits}`
}
