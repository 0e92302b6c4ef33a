import type { Digest, Head } from '../chain.rule.ts'

/** What the first seal follows on. */
export const NO_SEAL = '0'.repeat(64)

export interface SealContent {
  /** 1, 2, 3 … */
  position: number
  /** Epoch ms. */
  sealedAt: number
  /** What no entry after the seal may be made with: a key's id. */
  retires: string | null
  /** The ends of the ledgers that moved since the seal before, or of all when it retires something; by ledger id. */
  heads: readonly Head[]
}

/** A seal's digest: over the digest before it and everything that the seal says. */
export function sealDigest(digest: Digest, previous: string, seal: SealContent): string {
  const { position, sealedAt, retires } = seal
  return digest(['seal 1', previous, position, sealedAt, retires ?? '-', ...headLines(seal)].join('\n'))
}

function headLines({ heads }: SealContent): string[] {
  return heads.map(({ ledgerId, sequence, hash }) => `${ledgerId} ${sequence} ${hash}`)
}

/** What has been found of the seals up to one. */
export interface SealsSoFar {
  position: number
  digest: string
  /** Positions of the seals that retired a key, by its id. */
  retired: ReadonlyMap<string, number>
}

export interface SealKeys {
  /** The digest of a key by its id; `undefined` for a key that is neither current nor former. */
  digest(keyId: string): Digest | undefined
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
  if (keyId === null) return 'it was made without the key of this service'
  const retiredBy = before.retired.get(keyId)
  if (retiredBy !== undefined) return `it was made with key ${keyId}, which seal ${retiredBy} had retired`
  const digest = keys.digest(keyId)
  return !digest || sealDigest(digest, before.digest, seal) === seal.digest ? null : WRONG_DIGEST
}

const WRONG_DIGEST = 'its digest is not that of its contents and of the seal before it'
