import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isAllowedAddress, isPublicAddress, PrivateAddress, publicLookup } from './public-address.ts'

test('addresses of the public internet are public', () => {
  const addresses = '1.1.1.1 8.8.8.8 203.0.114.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808'
  for (const address of addresses.split(' ')) assert.ok(isPublicAddress(address), address)
})

test('private, local, mapped, translated and reserved addresses are not, and neither is a name', () => {
  const addresses = `0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.0.0.1 192.0.2.1 192.168.0.1
  198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:10.0.0.1 64:ff9b::7f00:1
  64:ff9b:1::808:808 100::1 2001::1 2001:db8::1 2002:7f00:1:: fc00::1 fe80::1 fec0::1 ff02::1 example.com `
  for (const address of addresses.split(/\s+/)) assert.not.ok(isPublicAddress(address), address)
})

test('loopback is allowed where the rule says so', () => {
  assert.ok(isAllowedAddress('127.0.0.1', { allowLoopback: true }))
  assert.not.ok(isAllowedAddress('127.0.0.1', { allowLoopback: false }))
  assert.not.ok(isAllowedAddress('10.0.0.1', { allowLoopback: true }))
})

/** What `net.connect` is given for a name with these addresses. */
function lookUp(addresses: LookupAddress[], all: boolean): Promise<unknown> {
  const resolver: LookupFunction = (_name, _options, callback) => callback(null, addresses)
  const lookup = publicLookup({ allowLoopback: false }, resolver)
  return new Promise((resolve) =>
    lookup('shop.example.com', { all }, (error, found, family) => resolve(error ?? [found, family])),
  )
}

const V6 = { address: '2606:4700::1111', family: 6 }
const V4 = { address: '8.8.8.8', family: 4 }

test('the lookup gives the checked addresses', async () => {
  const found = [V6, V4]
  assert.equal(await lookUp(found, true), [found, undefined])
  assert.equal(await lookUp(found, false), ['2606:4700::1111', 6])
})

test('the lookup fails when one of several addresses is private, and for none', async () => {
  const mixed = [V4, { address: '10.0.0.1', family: 4 }]
  assert.instance(await lookUp(mixed, true), PrivateAddress)
  assert.instance(await lookUp([], true), PrivateAddress)
})

test.run()
