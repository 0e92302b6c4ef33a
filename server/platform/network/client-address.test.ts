// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { addressKey, addressPrefix } from './client-address.ts'
import { dataCenterCheck } from './data-centers.ts'
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts'

const CASES: [address: string, key: string, prefix: string][] = [
  ['203.0.113.77', '203.0.113.77', '203.0.113.0/24'],
  ['::ffff:203.0.113.77', '203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['::1', '0:0:0:0::/64', '0:0:0::/48'],
  ['::', '0:0:0:0::/64', '0:0:0::/48'],
  ['64:ff9b::192.0.2.33', '64:ff9b:0:0::/64', '64:ff9b:0::/48'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64', 'fe80:0:0::/48'],
  ['', 'unknown', 'unknown'],
  ['not an address', 'unknown', 'unknown'],
  ['unknown', 'unknown', 'unknown'],
  ['203.0.113.77:443:1', 'unknown', 'unknown'],
  ['[203.0.113.77', 'unknown', 'unknown'],
]

/** As HAProxy, nginx, Caddy, Cloudflare, AWS, Azure, IIS and proxies written for Node.js or Java forward one client. */
const FORWARDED: [part: string, key: string][] = [
  ['203.0.113.77', '203.0.113.77'],
  [' 203.0.113.77\t', '203.0.113.77'],
  ['203.0.113.77:51234', '203.0.113.77'],
  ['::ffff:203.0.113.77', '203.0.113.77'],
  ['::ffff:203.0.113.77:51234', '203.0.113.77'],
  ['[::ffff:203.0.113.77]:51234', '203.0.113.77'],
  ['2001:db8:1:2::7', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::7]', '2001:db8:1:2::/64'],
  ['[2001:DB8:1:2::7]:51234', '2001:db8:1:2::/64'],
  ['"[2001:db8:1:2::7]:51234"', '2001:db8:1:2::/64'],
  ['[fe80::1%eth0]:51234', 'fe80:0:0:0::/64'],
]

for (const [part, key] of FORWARDED) {
  test(`knows the client in ${JSON.stringify(part)}`, () => assert.is(addressKey(part), key))
}

for (const [address, key, prefix] of CASES) {
  test(`counts and logs ${JSON.stringify(address)} as a network`, () => {
    assert.is(addressKey(address), key)
    assert.is(addressPrefix(address), prefix)
  })
}

test('loopback addresses of both families', () => {
  for (const address of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']) {
    assert.ok(isLoopbackAddress(address), address)
  }
  for (const address of ['', '0.0.0.0', '10.0.0.1', '128.0.0.1', '::', '::2', 'localhost']) {
    assert.not(isLoopbackAddress(address), address)
  }
})

test('host names that can only be this machine', () => {
  for (const name of ['localhost', 'LOCALHOST', '127.0.0.1', '[::1]']) assert.ok(isLoopbackHost(name), name)
  for (const name of ['localhost.example', '127.0.0.1.example', 'attacker.example', '[::2]', '0.0.0.0', '']) {
    assert.not(isLoopbackHost(name), name)
  }
})

test('rented servers differ from homes and mobile carriers', () => {
  const isDataCenter = dataCenterCheck(['203.0.113.0/24', '198.51.100.7', '2001:db8::/32'])
  const rented = '52.95.110.1 34.100.2.3 159.65.4.5 95.216.1.1 2a01:4f9:c010::1 ::ffff:52.95.110.1'
  const further = '203.0.113.99 198.51.100.7 2001:db8:1::5 [2001:db8::1]:443'
  for (const address of `${rented} ${further}`.split(' ')) assert.ok(isDataCenter(address), address)
  // Jazz, Zong, Telenor and Ufone, PTCL at home, and what is no address.
  const carriers = '39.32.10.1 119.160.56.1 37.111.128.1 103.255.4.1 182.176.1.1 2400:adc5::1'
  const others = '198.51.100.8 127.0.0.1 unknown '
  for (const address of `${carriers} ${others}`.split(' ')) assert.not.ok(isDataCenter(address), address)
})

test.run()
