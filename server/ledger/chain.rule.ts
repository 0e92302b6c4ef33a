import type { Posting } from './entries.rule.ts'
import type { EntryKind } from './journal-words.ts'

/** Hex SHA-256 of a text; handed in, since a rule imports no library. */
export type Digest = (text: string) => string

/** What the first entry of a ledger follows on. */
export const NO_HASH = '0'.repeat(64)

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

/** Accounts of which an entry must move one of its ledger's owner. */
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

/**
 * What is wrong with a stored entry behind the one that ended with `before`; `null` when nothing is. Each hash is taken
 * anew over the stored one before it, so the first that differs is where somebody changed something.
 */
export function chainFault(digest: Digest, before: Head, entry: ChainedEntry): string | null {
  if (entry.sequence !== before.sequence + 1) {
    return entry.sequence > before.sequence
      ? `it is number ${entry.sequence}, and number ${before.sequence + 1} is missing before it`
      : `it is number ${entry.sequence} a second time`
  }
  if (!` ${entry.legs} `.includes(` ${OWN_ACCOUNTS[entry.kind]} ${entry.ledgerId} `)) {
    return 'it stands in the ledger of somebody whose account it does not move'
  }
  if (entryHash(digest, before.hash, entry) === entry.hash) return null
  return 'its hash is not that of what it says behind the entry before it: one of the two was changed'
}
