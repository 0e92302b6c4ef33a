import { promises as dns, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts'

/** Addresses with this prefix stand for the IPv4 address in their last four bytes. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
/** All public IPv6 addresses are in this block. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** Whether an IP address is one of the public internet: not private, link-local, loopback, multicast or otherwise reserved. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address instanceof ipaddr.IPv6) {
    if (address.match(NAT64)) return isPublicAddress(address.toByteArray().slice(12).join('.'))
    if (!address.match(GLOBAL_UNICAST)) return false
  }
  return address.range() === 'unicast'
}

/** A host that resolves to an address that must not be connected to. */
export class PrivateAddress extends Error {
  readonly code = 'PRIVATE_ADDRESS'

  constructor() {
    super('the host is not on the public internet')
    this.name = 'PrivateAddress'
  }
}

export interface AddressRule {
  /** Whether this machine may be connected to. */
  allowLoopback: boolean
}

/** Whether the rule allows connections to an IP address. */
export function isAllowedAddress(address: string, { allowLoopback }: AddressRule): boolean {
  return isPublicAddress(address) || (allowLoopback && isLoopbackAddress(address))
}

/**
 * A lookup for `net.connect` that fails with `PrivateAddress` when any address of the name is not allowed. The connection is made to the
 * addresses that were checked. Node does not call it for hosts that are IP addresses.
 */
export function publicLookup(rule: AddressRule, lookup: LookupFunction = resolveName): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0)
      const addresses = Array.isArray(found)
        ? found
        : [{ address: found, family: found.includes(':') ? 6 : 4 }]
      const [first] = addresses
      if (!first || !addresses.every(({ address }) => isAllowedAddress(address, rule))) {
        return callback(new PrivateAddress(), '', 0)
      }
      if (options.all) return callback(null, addresses)
      callback(null, first.address, first.family)
    })
  }
}

const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]
const resolver = new dns.Resolver({ timeout: 2000, tries: 2 })

/**
 * Asks the name servers. `dns.lookup` would occupy one of Node's few threads, and a name server that does not answer could take them all
 * from other names and from password hashing.
 */
const resolveName: LookupFunction = (hostname, _options, callback) => {
  if (isLoopbackHost(hostname)) return callback(null, LOOPBACK)
  addressesOf(hostname).then(
    (addresses) => callback(null, addresses),
    (error: NodeJS.ErrnoException) => callback(error, '', 0),
  )
}

/** Throws the error of the IPv4 query when neither finds an address. */
async function addressesOf(hostname: string): Promise<LookupAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (addresses.length === 0 && four.status === 'rejected') throw four.reason
  return addresses
}
