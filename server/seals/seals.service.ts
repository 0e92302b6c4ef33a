import type { Queries } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { sha256 } from '../platform/sha256.ts'
import { NO_SEAL, sealDigest } from './seal.rule.ts'
import { findLastSeal, findUnsealedHeads, insertSeal } from './seals.store.ts'

export interface Seal {
  position: number
  /** Epoch ms. */
  sealedAt: number
  digest: string
}

export interface SealOutcome {
  /** `null`: there is nothing to seal yet. */
  seal: Seal | null
  /** Ledgers that moved since the seal before; 0 when no seal was made, and `seal` is the last one. */
  moved: number
}

/** The last seal that was made; `null` before the first. */
export async function lastSeal(db: Queries): Promise<Seal | null> {
  const row = await findLastSeal(db)
  return row ? { position: row.position, sealedAt: row.sealed_at, digest: row.digest } : null
}

/**
 * Seals the journal as it stands: whoever keeps the digest elsewhere can prove later what the journal held. Takes no
 * lock that a writer could wait for. Any number of processes may seal at once.
 */
export function sealLedger(platform: Platform): Promise<SealOutcome> {
  return platform.database.transaction(async (tx) => {
    const last = await lastSeal(tx)
    const heads = await findUnsealedHeads(tx)
    // Asked again: another sealer may have sealed them since.
    if (heads.length === 0) return { seal: await lastSeal(tx), moved: 0 }
    const position = (last?.position ?? 0) + 1
    const sealedAt = platform.clock.now()
    const digest = sealDigest(sha256, last?.digest ?? NO_SEAL, { position, sealedAt, heads })
    await insertSeal(tx, { position, sealed_at: sealedAt, digest }, heads)
    return { seal: { position, sealedAt, digest }, moved: heads.length }
  })
}
