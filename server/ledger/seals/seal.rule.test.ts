// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256 } from '../../platform/crypto/vault.ts'
import {
  NO_SEAL,
  type SealContent,
  type SealKeys,
  type SealsSoFar,
  sealDigest,
  sealFault,
  UNKEYED,
  unkeyedSealDigest,
} from './seal.rule.ts'

const SEAL: SealContent = {
  position: 1,
  sealedAt: 1_790_000_000_000,
  retires: null,
  heads: [
    { ledgerId: '01900000-0000-7000-8000-000000000001', sequence: 3, hash: 'ab'.repeat(32) },
    { ledgerId: '01900000-0000-7000-8000-000000000002', sequence: 1, hash: 'cd'.repeat(32) },
  ],
}

test('a known vector: digests from before keys that people keep must stay what they are', () => {
  const texts: string[] = []
  const digest = unkeyedSealDigest(
    (text) => {
      texts.push(text)
      return sha256(text)
    },
    NO_SEAL,
    SEAL,
  )
  assert.is(digest, '32007b6d5387438f369310f08de68f917a1570d51b182d826c581360f12699ea')
  assert.equal(texts, [
    `seal 1\n${NO_SEAL}\n1\n1790000000000
01900000-0000-7000-8000-000000000001 3 ${'ab'.repeat(32)}
01900000-0000-7000-8000-000000000002 1 ${'cd'.repeat(32)}`,
  ])
})

test('a known vector: so must digests with a key', () => {
  const texts: string[] = []
  const digest = (text: string) => String(texts.push(text))
  sealDigest(digest, NO_SEAL, SEAL)
  sealDigest(digest, NO_SEAL, { ...SEAL, retires: UNKEYED })
  const heads = `01900000-0000-7000-8000-000000000001 3 ${'ab'.repeat(32)}
01900000-0000-7000-8000-000000000002 1 ${'cd'.repeat(32)}`
  assert.equal(texts, [
    `seal 2\n${NO_SEAL}\n1\n1790000000000\n-\n${heads}`,
    `seal 2\n${NO_SEAL}\n1\n1790000000000\nunkeyed\n${heads}`,
  ])
})

const digestOf = (keyId: string) => (text: string) => `${keyId}.${sha256(keyId + text)}`
const KEYS: SealKeys = {
  sha256,
  digest: (keyId) => (keyId === 'aaaaaaaa' ? digestOf(keyId) : undefined),
  mayBeUnkeyed: true,
}
const START: SealsSoFar = { position: 0, digest: NO_SEAL, retired: new Map() }
const unkeyed = (seal: SealContent) => {
  return { ...seal, keyId: null, digest: unkeyedSealDigest(sha256, NO_SEAL, seal) }
}
const keyed = (seal: SealContent, keyId = 'aaaaaaaa') => {
  return { ...seal, keyId, digest: sealDigest(digestOf(keyId), NO_SEAL, seal) }
}

test('a seal holds with its key, or without one in a database that is older than keys', () => {
  assert.is(sealFault(KEYS, START, unkeyed(SEAL)), null)
  assert.is(sealFault(KEYS, START, keyed(SEAL)), null)
  assert.is(sealFault(KEYS, START, keyed(SEAL, 'bbbbbbbb')), null, 'its key is not at hand')
  assert.match(sealFault(KEYS, START, { ...keyed(SEAL), sealedAt: 0 }) ?? '', /its digest is not that/)
  assert.match(sealFault(KEYS, START, { ...unkeyed(SEAL), sealedAt: 0 }) ?? '', /its digest is not that/)
  assert.is(sealFault(KEYS, { ...START, position: 1 }, keyed(SEAL)), 'seal 2 is missing before it')
})

test('a seal without a key is a fault after the cut-over, where there was none, and when it retires something', () => {
  const fault = 'it was made without the key of this service'
  assert.is(sealFault(KEYS, { ...START, retired: new Map([[UNKEYED, 0]]) }, unkeyed(SEAL)), fault)
  assert.is(sealFault({ ...KEYS, mayBeUnkeyed: false }, START, unkeyed(SEAL)), fault)
  assert.is(sealFault(KEYS, START, unkeyed({ ...SEAL, retires: 'aaaaaaaa' })), fault)
})

test('a seal with a key that a seal before it retired is a fault', () => {
  const before = { ...START, retired: new Map([['aaaaaaaa', 7]]) }
  assert.is(sealFault(KEYS, before, keyed(SEAL)), 'it was made with key aaaaaaaa, which seal 7 had retired')
})

test('every part counts', () => {
  const [first, second] = SEAL.heads as [(typeof SEAL.heads)[0], (typeof SEAL.heads)[0]]
  const digests = [
    sealDigest(sha256, NO_SEAL, SEAL),
    sealDigest(sha256, sha256(NO_SEAL), SEAL),
    sealDigest(sha256, NO_SEAL, { ...SEAL, position: 2 }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, sealedAt: SEAL.sealedAt + 1 }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, retires: UNKEYED }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [second, first] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first, { ...second, sequence: 2 }] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first, { ...second, hash: NO_SEAL }] }),
  ]
  assert.is(new Set(digests).size, digests.length)
})

test.run()
