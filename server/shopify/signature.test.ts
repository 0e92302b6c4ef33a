import { createSecretKey, type KeyObject } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { decodeShopifyHmac, matchesShopifyHmac, signShopifyBody } from './signature.ts'

const body = Buffer.from('{"id":820982911946154508,"landing_site":"\\/products\\/x","note":"شکریہ"}')

const keys = (...secrets: string[]) => secrets.map((secret) => createSecretKey(secret, 'utf8'))

function isSigned(rawBody: Buffer, header: string | undefined, secrets: readonly KeyObject[]): boolean {
  const digest = decodeShopifyHmac(header)
  return digest !== null && secrets.some((secret) => matchesShopifyHmac(rawBody, digest, secret))
}

test('the digest is the published HMAC-SHA256 (RFC 4231, case 2), in base64', () => {
  const signed = signShopifyBody(Buffer.from('what do ya want for nothing?'), 'Jefe')
  const published = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
  assert.is(signed, Buffer.from(published, 'hex').toString('base64'))
})

test('any of the secrets of a store may have signed, whatever its place', () => {
  const header = signShopifyBody(body, 'former')
  for (const secrets of [['former'], ['present', 'former'], ['former', 'present']])
    assert.ok(isSigned(body, header, keys(...secrets)), secrets.join())
})

test('no header, no secret, a wrong secret and an empty secret are refused', () => {
  const header = signShopifyBody(body, 'right')
  assert.not.ok(isSigned(body, undefined, keys('right')))
  assert.not.ok(isSigned(body, '', keys('right')))
  assert.not.ok(isSigned(body, header, keys()))
  assert.not.ok(isSigned(body, header, keys('wrong')))
  assert.not.ok(isSigned(body, signShopifyBody(body, ''), keys('')))
})

test('only the canonical base64 of 32 bytes is taken, and nothing throws on the rest', () => {
  const header = signShopifyBody(body, 's')
  const bytes = Buffer.from(header, 'base64')
  const urlSafe = Buffer.from('fb'.repeat(32), 'hex').toString('base64url')
  // The last letter carries two unused bits: spellings that set them decode alike and must not pass.
  const spare = header.slice(0, 42) + String.fromCharCode(header.charCodeAt(42) + 1) + header.slice(43)
  const twisted = [
    ...[`${header} `, ` ${header}`, `${header}, ${header}`, `${header}=`, `*${header}`, header.slice(0, -1)],
    `${header.slice(0, 10)}\n${header.slice(10)}`,
    ...[bytes.toString('hex'), bytes.subarray(0, 31).toString('base64'), `${urlSafe}=`, spare],
    Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64'),
  ]
  for (const other of twisted) assert.not.ok(isSigned(body, other, keys('s')), JSON.stringify(other))
})

test('a body that differs in one byte is refused', () => {
  const header = signShopifyBody(body, 's')
  const reserialised = Buffer.from(body.toString().replaceAll('\\/', '/'))
  assert.not.ok(isSigned(reserialised, header, keys('s')))
  fc.assert(
    fc.property(fc.nat(body.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const other = Buffer.from(body)
      other.writeUInt8(other.readUInt8(at) ^ change, at)
      assert.not.ok(isSigned(other, header, keys('s')))
    }),
    { numRuns: 200 },
  )
})

test('what is signed verifies, for any bytes and any secret; any other header does not', () => {
  const anySecret = fc.string({ unit: 'grapheme', minLength: 1 })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), anySecret, fc.string(), (bytes, secret, noise) => {
      const raw = Buffer.from(bytes)
      assert.ok(isSigned(raw, signShopifyBody(raw, secret), keys(secret)))
      assert.not.ok(isSigned(raw, noise, keys(secret)))
    }),
    { numRuns: 300 },
  )
})

test.run()
