import type { EntryKind, Posting } from './entries.rule.ts'

/**
 * The keyed hash of a text, `KEYID.HEX`: the key's id in 8 hex characters, a dot, and HMAC-SHA256 in hex. Handed in,
 * since a rule imports no library.
 */
export type Digest = (text: string) => string

/** What the first entry of a ledger follows on. */
export const NO_HASH = '0'.repeat(64)

/** The id of the key that a stored hash names; `null` for a hash without a key. */
export function keyIdOf(hash: string): string | null {
  return /^([0-9a-f]{8})\.[0-9a-f]{64}$/.exec(hash)?.[1] ?? null
}

/** The end of one ledger's chain; `sequence` 0 and `NO_HASH` before its first entry. */
export interface Head {
  ledgerId: string
  sequence: number
  hash: string
}

/** An entry before it has its place. */
export interface LooseEntry {
  id: string
  ledgerId: string
  kind: EntryKind
  subjectId: string
  /** Epoch ms. */
  createdAt: number
  /** As `legsText` writes them. */
  legs: string
}

export interface Placed {
  sequence: number
  hash: string
}

/** All postings of an entry in line order, one a line. A verifier has the database write the very same text. */
export function legsText(postings: readonly Posting[]): string {
  return postings
    .map(({ account, owner, amount }, line) => `${line} ${account} ${owner} ${amount}`)
    .join('\n')
}

/**
 * An entry's hash: over the hash before it and everything that the entry says. No part can hold a line break, so two
 * different entries never make one text.
 */
export function entryHash(
  digest: Digest,
  previous: string,
  entry: LooseEntry & { sequence: number },
): string {
  const { ledgerId, sequence, id, kind, subjectId, createdAt, legs } = entry
  return digest(['entry 1', previous, ledgerId, sequence, id, kind, subjectId, createdAt, legs].join('\n'))
}

/** The text that a head's MAC authenticates: where its ledger ends. */
export function headText({ ledgerId, sequence, hash }: Head): string {
  return ['head 1', ledgerId, sequence, hash].join('\n')
}

/** Gives each entry, in order, the next place in its ledger. Answers the places and where the chains end then. */
export function chainEntries(
  digest: Digest,
  heads: readonly Head[],
  entries: readonly LooseEntry[],
): { places: Placed[]; heads: Head[] } {
  const ends = new Map(heads.map((head) => [head.ledgerId, head]))
  const places = entries.map((entry) => {
    const end = ends.get(entry.ledgerId)
    if (!end) throw new Error(`no head of ledger ${entry.ledgerId}`)
    const sequence = end.sequence + 1
    const place = { sequence, hash: entryHash(digest, end.hash, { ...entry, sequence }) }
    ends.set(entry.ledgerId, { ledgerId: entry.ledgerId, ...place })
    return place
  })
  return { places, heads: [...ends.values()] }
}

/** Each entry must move this account of its ledger's owner. */
export const OWN_ACCOUNTS: Readonly<Record<EntryKind, string>> = {
  sale_accepted: 'merchant_unbilled',
  credit_granted: 'merchant_unbilled',
  cycle_closed: 'merchant_receivable',
  cycle_charged: 'merchant_receivable',
  payout_created: 'payouts_in_transit',
  payout_confirmed: 'payouts_in_transit',
  payout_failed: 'payouts_in_transit',
}

/** A stored entry with its postings. */
export type ChainedEntry = LooseEntry & Placed

/** What an entry may be made with. */
export interface ChainKeys {
  /** The digest of a key by its id; `undefined` for a key that is neither current nor former. */
  digest(keyId: string): Digest | undefined
  /** The last entry of a ledger that may be made with this key; `Infinity` while any may be. */
  lastWith(keyId: string, ledgerId: string): number
}

/**
 * What is wrong with a stored entry behind the one that ended with `before`; `null` when nothing is, or when its key is not
 * available. Each hash is computed over the stored one before it, so the first that differs shows where the journal was changed.
 */
export function chainFault(keys: ChainKeys, before: Head, entry: ChainedEntry): string | null {
  if (entry.sequence !== before.sequence + 1) {
    return entry.sequence > before.sequence
      ? `it is number ${entry.sequence}, and number ${before.sequence + 1} is missing before it`
      : `it is number ${entry.sequence} a second time`
  }
  if (!` ${entry.legs} `.includes(` ${OWN_ACCOUNTS[entry.kind]} ${entry.ledgerId} `)) {
    return 'it stands in the ledger of a party whose account it does not move'
  }
  const keyId = keyIdOf(entry.hash)
  if (keyId === null) return 'it was made without the key of this service'
  if (entry.sequence > keys.lastWith(keyId, entry.ledgerId)) {
    return `it was made with key ${keyId}, which had been retired before`
  }
  const digest = keys.digest(keyId)
  if (!digest || entryHash(digest, before.hash, entry) === entry.hash) return null
  return 'its hash is not that of its contents and of the entry before it: one of the two was changed'
}
