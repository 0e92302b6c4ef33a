// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256 } from '../platform/sha256.ts'
import { NO_SEAL, type SealContent, sealDigest } from './seal.rule.ts'

const SEAL: SealContent = {
  position: 1,
  sealedAt: 1_790_000_000_000,
  heads: [
    { ledgerId: '01900000-0000-7000-8000-000000000001', sequence: 3, hash: 'ab'.repeat(32) },
    { ledgerId: '01900000-0000-7000-8000-000000000002', sequence: 1, hash: 'cd'.repeat(32) },
  ],
}

test('a known vector: digests that people keep must stay what they are', () => {
  const texts: string[] = []
  const digest = sealDigest(
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

test('every part counts', () => {
  const [first, second] = SEAL.heads as [(typeof SEAL.heads)[0], (typeof SEAL.heads)[0]]
  const digests = [
    sealDigest(sha256, NO_SEAL, SEAL),
    sealDigest(sha256, sha256(NO_SEAL), SEAL),
    sealDigest(sha256, NO_SEAL, { ...SEAL, position: 2 }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, sealedAt: SEAL.sealedAt + 1 }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [second, first] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first, { ...second, sequence: 2 }] }),
    sealDigest(sha256, NO_SEAL, { ...SEAL, heads: [first, { ...second, hash: NO_SEAL }] }),
  ]
  assert.is(new Set(digests).size, digests.length)
})

test.run()
