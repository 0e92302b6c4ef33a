// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256 } from '../../platform/crypto/vault.ts'
import { NO_SEAL, type SealContent, type SealsSoFar, sealDigest, sealFault } from './seal.rule.ts'

const SEAL: SealContent = {
  position: 1,
  sealedAt: 1_790_000_000_000,
  retires: null,
  heads: [
    { ledgerId: '01900000-0000-7000-8000-000000000001', sequence: 3, hash: 'ab'.repeat(32) },
    { ledgerId: '01900000-0000-7000-8000-000000000002', sequence: 1, hash: 'cd'.repeat(32) },
  ],
}

test('a known vector: digests that people keep must stay what they are', () => {
  const texts: string[] = []
  const digest = (text: string) => String(texts.push(text))
  sealDigest(digest, NO_SEAL, SEAL)
  sealDigest(digest, NO_SEAL, { ...SEAL, retires: 'aaaaaaaa' })
  const heads = `01900000-0000-7000-8000-000000000001 3 ${'ab'.repeat(32)}
01900000-0000-7000-8000-000000000002 1 ${'cd'.repeat(32)}`
  assert.equal(texts, [
    `seal 1\n${NO_SEAL}\n1\n1790000000000\n-\n${heads}`,
    `seal 1\n${NO_SEAL}\n1\n1790000000000\naaaaaaaa\n${heads}`,
  ])
})

const digestOf = (keyId: string) => (text: string) => `${keyId}.${sha256(keyId + text)}`
const KEYS = (keyId: string) => (keyId === 'aaaaaaaa' ? digestOf(keyId) : undefined)
const START: SealsSoFar = { position: 0, digest: NO_SEAL, retired: new Map() }
const keyed = (seal: SealContent, keyId = 'aaaaaaaa') => {
  return { ...seal, digest: sealDigest(digestOf(keyId), NO_SEAL, seal) }
}

test('a seal holds with its key', () => {
  assert.is(sealFault(KEYS, START, keyed(SEAL)), null)
  assert.is(sealFault(KEYS, START, keyed(SEAL, 'bbbbbbbb')), null, 'its key is not at hand')
  assert.match(sealFault(KEYS, START, { ...keyed(SEAL), sealedAt: 0 }) ?? '', /its digest is not that/)
  assert.is(sealFault(KEYS, { ...START, position: 1 }, keyed(SEAL)), 'seal 2 is missing before it')
})

test('a seal without a key is a fault', () => {
  const unkeyed = { ...SEAL, digest: sealDigest(sha256, NO_SEAL, SEAL) }
  assert.is(sealFault(KEYS, START, unkeyed), 'it was made without the key of this service')
})

test('a seal with a key that a seal before it retired is a fault', () => {
  const before = { ...START, position: 7, retired: new Map([['aaaaaaaa', 7]]) }
  assert.is(sealFault(KEYS, { ...before, position: 0 }, keyed(SEAL)), null)
  const later = keyed({ ...SEAL, position: 8 })
  assert.is(sealFault(KEYS, before, later), 'it was made with key aaaaaaaa, which seal 7 had retired')
})

test.run()
