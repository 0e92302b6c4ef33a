// database: none

import { createHmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluck } from '../../test/testkit/pluck.ts'
import { anyCharacter, fc } from '../../test/testkit/property.ts'
import { allKeys, createAppKey, createAppKeys } from './key-ring.ts'
import { type Binding, createVault, IntegrityError, UnknownKeyError } from './vault.ts'

const ONE = Buffer.alloc(32, 1)
const TWO = Buffer.alloc(32, 2)
const vault = createVault(createAppKeys(ONE))
const otherVault = createVault(createAppKeys(TWO))
const rotated = createVault(createAppKeys(TWO, [ONE]))

const STORE: Binding = { purpose: 'store', row: 'r1', owner: 'o1', facts: ['shop.example', null, 5] }
const IBAN: Binding = { ...STORE, purpose: 'iban' }

const isIntegrityError = (error: unknown) => error instanceof IntegrityError
const payloadOf = (sealed: string) => sealed.split('.')[2] ?? ''

test('what was sealed opens with the same key and binding', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.string(), fc.string(), (text, purpose, row) => {
      const binding = { ...STORE, purpose, row }
      assert.is(vault.open(vault.seal(text, binding), binding), text)
    }),
    { numRuns: 300 },
  )
})

test('the same text is sealed differently each time, and does not show', () => {
  const first = vault.seal('shpss_secret', STORE)
  assert.is.not(first, vault.seal('shpss_secret', STORE))
  assert.not.match(Buffer.from(payloadOf(first), 'base64url').toString('latin1'), 'shpss')
})

test('a value opens for no other column, row, owner or fact', () => {
  const sealed = vault.seal('secret', STORE)
  const others: Binding[] = [
    IBAN,
    { ...STORE, row: 'r2' },
    { ...STORE, owner: 'o2' },
    { ...STORE, row: 'o1', owner: 'r1' },
    { ...STORE, facts: ['shop.example', null, 6] },
    { ...STORE, facts: ['shop.example', 0, 5] },
    { ...STORE, facts: ['shop.example', null, '5'] },
    { ...STORE, facts: ['shop.example', null] },
    { ...STORE, facts: [] },
  ]
  for (const other of others) assert.throws(() => vault.open(sealed, other), isIntegrityError)
})

test('a key that is not in the ring is named', () => {
  const sealed = vault.seal('secret', STORE)
  const { id } = createAppKey(ONE)
  assert.ok(sealed.startsWith(`v2.${id}.`))
  const isNamed = (error: unknown) =>
    error instanceof UnknownKeyError && error.keyId === id && /APP_KEYS_FORMER/.test(error.message)
  assert.throws(() => otherVault.open(sealed, STORE), isNamed)
  const renamed = sealed.replace(id, createAppKey(TWO).id)
  assert.throws(() => otherVault.open(renamed, STORE), isIntegrityError)
  assert.throws(() => rotated.open(renamed, STORE), isIntegrityError)
})

test('a former key still opens what it sealed, and seals nothing new', () => {
  const sealed = vault.seal('secret', STORE)
  assert.is(rotated.open(sealed, STORE), 'secret')
  assert.is(otherVault.open(rotated.seal('secret', STORE), STORE), 'secret')
  assert.equal([rotated.isCurrent(sealed), rotated.isCurrent(rotated.seal('secret', STORE))], [false, true])
})

test('a change of any byte is noticed, and so is anything cut off or put behind', () => {
  const sealed = vault.seal('secret', STORE)
  const head = sealed.slice(0, sealed.lastIndexOf('.') + 1)
  const bytes = Buffer.from(payloadOf(sealed), 'base64url')
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    for (const other of [changed, bytes.subarray(0, at)].map((some) => some.toString('base64url')))
      assert.throws(() => vault.open(`${head}${other}`, STORE), isIntegrityError, `byte ${at}`)
  }
  const odd = ['', 'v2', 'v2.', 'v2..', head, sealed.replace('v2', 'v3'), `${sealed}.AAAA`, `${sealed}AAAA`]
  for (const text of [...odd, `v2.NOKEYID\n.${payloadOf(sealed)}`]) {
    assert.throws(() => vault.open(text, STORE), isIntegrityError, text)
  }
})

test('fingerprints find equal texts of one purpose under one key only', () => {
  const print = vault.fingerprint('PK36SCBL0000001123456702', 'iban')
  assert.match(print, /^[0-9a-f]{64}$/)
  assert.is(print, vault.fingerprint('PK36SCBL0000001123456702', 'iban'))
  assert.is.not(print, vault.fingerprint('PK36SCBL0000001123456702', 'secret'))
  assert.is.not(print, otherVault.fingerprint('PK36SCBL0000001123456702', 'iban'))
  assert.is.not(vault.fingerprint('b', 'a'), vault.fingerprint('', 'ab'))
})

test('during a rotation a text is found by its fingerprint under any key', () => {
  assert.equal(rotated.fingerprints('secret', 'store'), [
    otherVault.fingerprint('secret', 'store'),
    vault.fingerprint('secret', 'store'),
  ])
})

/** RFC 5869 for one block of output: extract with an empty salt, then expand. */
function hkdf(key: Buffer, info: string, length: number): Buffer {
  const extracted = createHmac('sha256', Buffer.alloc(32)).update(key).digest()
  return createHmac('sha256', extracted).update(`${info}\x01`).digest().subarray(0, length)
}

test('a key derives one key per purpose, as RFC 5869 says', () => {
  const key = createAppKey(ONE)
  assert.equal(key.derive('affiliate encrypt'), hkdf(ONE, 'affiliate encrypt', 32))
  assert.not.equal(key.derive('affiliate encrypt'), key.derive('affiliate fingerprint'))
  assert.not.equal(key.derive('affiliate encrypt'), createAppKey(TWO).derive('affiliate encrypt'))
})

test('an id names a key in 8 hex characters', () => {
  assert.is(createAppKey(ONE).id, hkdf(ONE, 'affiliate key id', 4).toString('hex'))
  assert.match(createAppKey(ONE).id, /^[0-9a-f]{8}$/)
  assert.is.not(createAppKey(ONE).id, createAppKey(TWO).id)
})

test('a ring lists the current key first', () => {
  const keys = createAppKeys(ONE, [TWO])
  assert.equal(pluck(allKeys(keys), 'id'), [createAppKey(ONE).id, createAppKey(TWO).id])
  assert.equal(createAppKeys(ONE).former, [])
})

test.run()
