import { type Digest, type Head, keyIdOf } from '../chain.rule.ts'

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
  const heads = seal.heads.map(({ ledgerId, sequence, hash }) => `${ledgerId} ${sequence} ${hash}`)
  return digest(['seal 1', previous, position, sealedAt, retires ?? '-', ...heads].join('\n'))
}

/** The seal before the one that is checked, and the seals that retired keys. */
export interface SealsSoFar {
  position: number
  digest: string
  /** Positions of the seals that retired a key, by its id; also of later ones. */
  retired: ReadonlyMap<string, number>
}

/**
 * What is wrong with a stored seal behind `before`; `null` when nothing is, or when its key is unknown. `digestOf` gives the digest of a key by
 * its id; `undefined` for a key that is neither current nor former.
 */
export function sealFault(
  digestOf: (keyId: string) => Digest | undefined,
  before: SealsSoFar,
  seal: SealContent & { digest: string },
): string | null {
  if (seal.position !== before.position + 1) return `seal ${before.position + 1} is missing before it`
  const keyId = keyIdOf(seal.digest)
  if (keyId === null) return 'it was made without the key of this service'
  const retiredBy = before.retired.get(keyId)
  if (retiredBy !== undefined && retiredBy < seal.position)
    return `it was made with key ${keyId}, which seal ${retiredBy} had retired`
  const digest = digestOf(keyId)
  if (!digest || sealDigest(digest, before.digest, seal) === seal.digest) return null
  return 'its digest is not that of its contents and of the seal before it'
}
