// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../proof/testbed/property.ts'
import { createAppKeys } from './key-ring.ts'
import { createVault } from './vault.ts'

const vault = createVault(createAppKeys(Buffer.alloc(32, 1)))
const otherVault = createVault(createAppKeys(Buffer.alloc(32, 2)))

test('what was sealed opens with the same key and purpose', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.string(), (text, purpose) => {
      assert.is(vault.decrypt(vault.encrypt(text, purpose), purpose), text)
    }),
    { numRuns: 300 },
  )
})

test('the same text is sealed differently each time, and does not show', () => {
  const first = vault.encrypt('shpss_secret', 'store')
  assert.is.not(first, vault.encrypt('shpss_secret', 'store'))
  assert.not.match(Buffer.from(first.slice(3), 'base64url').toString('latin1'), 'shpss')
})

test('neither another purpose nor another key opens it', () => {
  const sealed = vault.encrypt('secret', 'store')
  assert.throws(() => vault.decrypt(sealed, 'iban'))
  assert.throws(() => otherVault.decrypt(sealed, 'store'))
})

test('a former key still opens what it sealed, and seals nothing new', () => {
  const sealed = otherVault.encrypt('secret', 'store')
  const rotated = createVault(createAppKeys(Buffer.alloc(32, 1), [Buffer.alloc(32, 2)]))
  assert.is(rotated.decrypt(sealed, 'store'), 'secret')
  assert.is(vault.decrypt(rotated.encrypt('secret', 'store'), 'store'), 'secret')
  assert.throws(() => rotated.decrypt(sealed, 'iban'))
})

test('a change of any byte is noticed, and so is anything cut off or put behind', () => {
  const sealed = vault.encrypt('secret', 'store')
  const bytes = Buffer.from(sealed.slice(3), 'base64url')
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.throws(
      () => vault.decrypt(`v1.${changed.toString('base64url')}`, 'store'),
      undefined,
      `byte ${at}`,
    )
    assert.throws(() => vault.decrypt(`v1.${bytes.subarray(0, at).toString('base64url')}`, 'store'))
  }
  for (const text of ['', 'v1', 'v1.', sealed.replace('v1', 'v2'), `${sealed}.AAAA`, `${sealed}AAAA`]) {
    assert.throws(() => vault.decrypt(text, 'store'), undefined, text)
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

test.run()
