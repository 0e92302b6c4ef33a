import type { Digest, Head } from '../chain.rule.ts'

/** What the first seal follows on. */
export const NO_SEAL = '0'.repeat(64)

/** What a seal retires when it is the cut-over to keys: hashes without one. */
export const UNKEYED = 'unkeyed'

export interface SealContent {
  /** 1, 2, 3 … */
  position: number
  /** Epoch ms. */
  sealedAt: number
  /** What no entry after the seal may be made with: a key's id, or `UNKEYED`. */
  retires: string | null
  /** The ends of the ledgers that moved since the seal before, or of all when it retires something; by ledger id. */
  heads: readonly Head[]
}

/** A seal's digest: over the digest before it and everything that the seal says. */
export function sealDigest(digest: Digest, previous: string, seal: SealContent): string {
  const { position, sealedAt, retires } = seal
  return digest(['seal 2', previous, position, sealedAt, retires ?? '-', ...headLines(seal)].join('\n'))
}

/** The digest of a seal from before the journal was keyed; `sha256` without a key. */
export function unkeyedSealDigest(sha256: Digest, previous: string, seal: SealContent): string {
  return sha256(['seal 1', previous, seal.position, seal.sealedAt, ...headLines(seal)].join('\n'))
}

function headLines({ heads }: SealContent): string[] {
  return heads.map(({ ledgerId, sequence, hash }) => `${ledgerId} ${sequence} ${hash}`)
}

/** What has been found of the seals up to one. */
export interface SealsSoFar {
  position: number
  digest: string
  /** Positions of the seals that retired a key, by its id (or `UNKEYED`). */
  retired: ReadonlyMap<string, number>
}

export interface SealKeys {
  /** Plain SHA-256, for seals without a key. */
  sha256: Digest
  /** The digest of a key by its id; `undefined` for a key that is neither current nor former. */
  digest(keyId: string): Digest | undefined
  /** Whether seals without a key may exist at all: only in a database that is older than keys. */
  mayBeUnkeyed: boolean
}

export interface StoredSeal extends SealContent {
  digest: string
  /** The key that the digest names; `null` without one. */
  keyId: string | null
}

/** What is wrong with a stored seal behind `before`; `null` when nothing is, or when its key is unknown. */
export function sealFault(keys: SealKeys, before: SealsSoFar, seal: StoredSeal): string | null {
  if (seal.position !== before.position + 1) return `seal ${before.position + 1} is missing before it`
  const { keyId } = seal
  if (keyId === null) return unkeyedFault(keys, before, seal)
  const retiredBy = before.retired.get(keyId)
  if (retiredBy !== undefined) return `it was made with key ${keyId}, which seal ${retiredBy} had retired`
  const digest = keys.digest(keyId)
  return !digest || sealDigest(digest, before.digest, seal) === seal.digest ? null : WRONG_DIGEST
}

const WRONG_DIGEST = 'its digest is not that of its contents and of the seal before it'

function unkeyedFault(
  { sha256, mayBeUnkeyed }: SealKeys,
  before: SealsSoFar,
  seal: StoredSeal,
): string | null {
  if (!mayBeUnkeyed || before.retired.has(UNKEYED) || seal.retires !== null) {
    return 'it was made without the key of this service'
  }
  return unkeyedSealDigest(sha256, before.digest, seal) === seal.digest ? null : WRONG_DIGEST
}
