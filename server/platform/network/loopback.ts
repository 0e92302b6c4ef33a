import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether an IP address is a loopback address. IPv4 mapped to IPv6 (`::ffff:127.0.0.1`) counts as IPv4. */
export function isLoopbackAddress(address = ''): boolean {
  const family = isIP(address)
  return family !== 0 && loopback.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether a host name, as `URL.hostname` writes it, always means this machine. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase()
  return name === 'localhost' || isLoopbackAddress(name.replace(/^\[(.*)\]$/, '$1'))
}
