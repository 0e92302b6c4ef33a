// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256 } from '../platform/crypto/vault.ts'
import { pluck } from '../test/testkit/pluck.ts'
import {
  type ChainedEntry,
  type ChainKeys,
  chainEntries,
  chainFault,
  type Digest,
  entryHash,
  type Head,
  headText,
  keyIdOf,
  type LooseEntry,
  legsText,
  NO_HASH,
} from './chain.rule.ts'
import { payoutCreated, saleAccepted } from './entries.rule.ts'

const MERCHANT = '01900000-0000-7000-8000-000000000001'
const CREATOR = '01900000-0000-7000-8000-000000000002'

function saleOf(number: number, merchantId = MERCHANT): LooseEntry {
  const saleId = `01900000-0000-7000-8000-0000000001${String(number).padStart(2, '0')}`
  const entry = saleAccepted({ saleId, merchantId, creatorId: CREATOR, commission: 1000, platformFee: 100 })
  const { kind, subjectId, ledgerId, postings } = entry
  const id = `01900000-0000-7000-8000-0000000002${String(number).padStart(2, '0')}`
  return { id, kind, subjectId, ledgerId, createdAt: 1_790_000_000_000 + number, legs: legsText(postings) }
}

const startOf = (ledgerId: string): Head => ({ ledgerId, sequence: 0, hash: NO_HASH })

function chained(
  entries: readonly LooseEntry[],
  digest: Digest = digestOf(OLD),
  heads = [...new Set(entries.map((entry) => entry.ledgerId))].map(startOf),
): ChainedEntry[] {
  const { places } = chainEntries(digest, heads, entries)
  return entries.map((entry, index) => ({ ...entry, ...(places[index] as ChainedEntry) }))
}

/** A key's digest, as a test can compute it. */
const digestOf = (keyId: string) => (text: string) => `${keyId}.${sha256(keyId + text)}`
const OLD = 'aaaaaaaa'
const NEW = 'bbbbbbbb'

/** Both keys known, none retired. */
const KEYS: ChainKeys = {
  digest: (keyId) => ([OLD, NEW].includes(keyId) ? digestOf(keyId) : undefined),
  lastWith: () => Number.POSITIVE_INFINITY,
}

/** Index of the first entry of one ledger that the chain does not hold, and why. */
function firstFault(entries: readonly ChainedEntry[], keys: ChainKeys = KEYS): [number, string] | null {
  let before = startOf(MERCHANT)
  for (const [index, entry] of entries.entries()) {
    const fault = chainFault(keys, before, entry)
    if (fault !== null) return [index, fault]
    before = entry
  }
  return null
}

test('a known vector: what is hashed never changes, or every journal would seem to be tampered with', () => {
  const { legs } = saleOf(1)
  assert.is(
    legs,
    [
      `0 merchant_unbilled ${MERCHANT} 1100`,
      `1 creator_pending ${CREATOR} -1000`,
      '2 platform_fees 00000000-0000-0000-0000-000000000000 -100',
    ].join('\n'),
  )
  const texts: string[] = []
  const digest = (text: string) => {
    texts.push(text)
    return sha256(text)
  }
  assert.is(
    entryHash(digest, NO_HASH, { ...saleOf(1), sequence: 1 }),
    '0b2ca33329f1e15242175f98f47e1d5de110a870a0e070b70195d2a6abd155cd',
  )
  assert.equal(texts, [
    `entry 1\n${NO_HASH}\n${MERCHANT}\n1\n01900000-0000-7000-8000-000000000201\nsale_accepted\n01900000-0000-7000-8000-000000000101\n1790000000001\n${legs}`,
  ])
})

test('entries of several ledgers each follow on their own', () => {
  const other = '01900000-0000-7000-8000-000000000009'
  const entries = [saleOf(1), saleOf(2, other), saleOf(3)]
  const { places, heads } = chainEntries(
    sha256,
    [{ ...startOf(MERCHANT), sequence: 7 }, startOf(other)],
    entries,
  )
  assert.equal(pluck(places, 'sequence'), [8, 1, 9])
  assert.equal(heads, [
    { ledgerId: MERCHANT, ...places[2] },
    { ledgerId: other, ...places[1] },
  ])
  assert.throws(() => chainEntries(sha256, [startOf(other)], entries), /no head of ledger/)
})

test('the first entry that was edited, removed, inserted or moved is named', () => {
  const books = () => chained([1, 2, 3, 4].map((number) => saleOf(number)))
  assert.is(firstFault(books()), null)
  const [one, two, three, four] = books() as [ChainedEntry, ChainedEntry, ChainedEntry, ChainedEntry]
  assert.equal(firstFault([one, three, four]), [1, 'it is number 3, and number 2 is missing before it'])
  assert.equal(firstFault([one, two, two, three]), [2, 'it is number 2 a second time'])
  assert.match(
    firstFault([
      { ...two, sequence: 1 },
      { ...one, sequence: 2 },
    ])?.[1] ?? '',
    /not that of its contents/,
  )
  const others = '01900000-0000-7000-8000-000000000008'
  const strangers = { ...two, legs: two.legs.replace(MERCHANT, others) }
  assert.equal(firstFault([one, strangers]), [
    1,
    'it stands in the ledger of a party whose account it does not move',
  ])
})

test('an entry belongs into the ledger of its merchant or creator, whatever it is', () => {
  const { kind, subjectId, ledgerId, postings } = payoutCreated({
    payoutId: MERCHANT,
    creatorId: CREATOR,
    amount: 7,
  })
  const loose = { id: CREATOR, kind, subjectId, ledgerId, createdAt: 0, legs: legsText(postings) }
  const [entry] = chained([loose]) as [ChainedEntry]
  assert.is(ledgerId, CREATOR)
  assert.is(chainFault(KEYS, startOf(CREATOR), entry), null)
})

/** Two entries with the old key and two with the new one. */
function keyedBooks(): ChainedEntry[] {
  const books: ChainedEntry[] = []
  for (const [first, digest] of [
    [1, digestOf(OLD)],
    [3, digestOf(NEW)],
  ] as const) {
    books.push(...chained([saleOf(first), saleOf(first + 1)], digest, [books.at(-1) ?? startOf(MERCHANT)]))
  }
  return books
}

test('a hash names its key', () => {
  const [old] = keyedBooks() as [ChainedEntry]
  assert.is(keyIdOf(sha256('any')), null)
  assert.is(keyIdOf(old.hash), OLD)
  assert.is(keyIdOf(`${OLD}.short`), null)
  assert.is(keyIdOf(''), null)
})

test('a journal goes on under a key and under the next one', () => {
  assert.is(firstFault(keyedBooks()), null)
})

test('an entry that is made without a key is a fault, whatever its hash', () => {
  const books = keyedBooks()
  const forged = chained([saleOf(5)], sha256, [books[3] as ChainedEntry])
  assert.equal(firstFault([...books, ...forged]), [4, 'it was made without the key of this service'])
  assert.is(firstFault(chained([saleOf(1)], sha256))?.[0], 0)
})

test('what is made with a retired key may only stand up to where it was retired', () => {
  const books = keyedBooks()
  const lastWith = (last: Record<string, number>): ChainKeys => ({
    ...KEYS,
    lastWith: (keyId) => last[keyId] ?? Number.POSITIVE_INFINITY,
  })
  assert.is(firstFault(books, lastWith({ [OLD]: 2 })), null)
  assert.equal(firstFault(books, lastWith({ [OLD]: 1 })), [
    1,
    `it was made with key ${OLD}, which had been retired before`,
  ])
})

test('an entry whose key is not at hand is passed over, and the next one is checked', () => {
  const books = keyedBooks()
  const digest = (keyId: string) => (keyId === OLD ? undefined : KEYS.digest(keyId))
  assert.is(firstFault(books, { ...KEYS, digest }), null)
  const changed = books.with(2, { ...(books[2] as ChainedEntry), createdAt: 0 })
  assert.is(firstFault(changed, { ...KEYS, digest })?.[0], 2)
})

test('a known vector: what a head is authenticated by never changes', () => {
  assert.is(
    headText({ ledgerId: MERCHANT, sequence: 7, hash: `${OLD}.${'0'.repeat(64)}` }),
    `head 1\n${MERCHANT}\n7\n${OLD}.${'0'.repeat(64)}`,
  )
})

test.run()
