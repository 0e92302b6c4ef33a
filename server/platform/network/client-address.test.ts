// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { addressKey, addressPrefix } from './client-address.ts'

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

test.run()
