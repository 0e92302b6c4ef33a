import type { Digest, Head } from '../ledger/chain.rule.ts'

/** What the first seal follows on. */
export const NO_SEAL = '0'.repeat(64)

export interface SealContent {
  /** 1, 2, 3 … */
  position: number
  /** Epoch ms. */
  sealedAt: number
  /** The ends of the ledgers that moved since the seal before, by ledger id. */
  heads: readonly Head[]
}

/** A seal's digest: over the digest before it and everything that the seal says. */
export function sealDigest(digest: Digest, previous: string, seal: SealContent): string {
  const heads = seal.heads.map(({ ledgerId, sequence, hash }) => `${ledgerId} ${sequence} ${hash}`)
  return digest(['seal 1', previous, seal.position, seal.sealedAt, ...heads].join('\n'))
}
