import { SettingError } from '../../platform/config.ts'
import { KEY_MARK } from '../../platform/crypto/key-mark.ts'
import { sealedKeyId } from '../../platform/crypto/vault.ts'
import type { Tx } from '../../platform/database/database.ts'
import { readWatermark } from '../../platform/database/watermarks.ts'
import type { Platform } from '../../platform/platform.ts'
import type { Head } from '../chain.rule.ts'
import { journalKeys } from '../journal-keys.ts'
import { isKeyInJournal, lockAllHeads } from '../ledger.store.ts'
import { NO_SEAL, sealDigest } from './seal.rule.ts'
import {
  findAllHeads,
  findUnsealedHeads,
  insertSeal,
  lastSeal,
  retiredKeys,
  type Seal,
} from './seals.store.ts'

export { lastSeal, retiredKeys, type Seal } from './seals.store.ts'

/**
 * Seals the journal as it stands, with the current key. Its digest, kept elsewhere, proves later what the journal held. Takes
 * no lock that a writer could wait for. Any number of processes may seal at once. `moved`: ledgers that moved since the seal before; 0 when
 * no seal was made, and `seal` is the last one, or `null` without any.
 */
export function sealLedger(platform: Platform): Promise<{ seal: Seal | null; moved: number }> {
  return platform.database.transaction(async (tx) => {
    const last = await lastSeal(tx)
    const heads = await findUnsealedHeads(tx)
    // Asked again: another sealer may have sealed them since.
    if (heads.length === 0) return { seal: await lastSeal(tx), moved: 0 }
    return { seal: await addSeal(platform, tx, last, null, heads), moved: heads.length }
  })
}

/**
 * The ids of the former keys that a rotation retires: those that made anything in the journal or the database's mark, and
 * are not retired yet. A key that made neither is not in use yet: it may be the next one, added before APP_KEY is replaced.
 */
export async function keysToRetire(platform: Platform): Promise<string[]> {
  const { reader } = platform.database
  const mark = await readWatermark(reader, KEY_MARK)
  const markedWith = mark === undefined ? null : sealedKeyId(mark)
  const retired = await retiredKeys(reader)
  const ids: string[] = []
  for (const { id } of platform.keys.former) {
    if (retired.has(id)) continue
    if (id === markedWith || (await isKeyInJournal(reader, id))) ids.push(id)
  }
  return ids
}

/**
 * The step of a key rotation before everything else: retires the former keys that were in use. One seal for each, with the current key, holds
 * the heads of all ledgers; what is written with that key afterwards is refused by the database, and a fault. Every process
 * must have the new key by then. The former keys are still needed to verify what they made. Answers the new seals; none when
 * all are retired already. Throws `SettingError` when APP_KEY was retired.
 */
export async function sealForKeyRotation(platform: Platform): Promise<Seal[]> {
  await refuseRetiredKey(platform)
  const seals: Seal[] = []
  for (const id of await keysToRetire(platform)) {
    const seal = await platform.database.transaction(async (tx) => {
      await lockAllHeads(tx)
      if ((await retiredKeys(tx)).has(id)) return null
      return addSeal(platform, tx, await lastSeal(tx), id, await findAllHeads(tx))
    })
    if (seal) seals.push(seal)
  }
  return seals
}

/** Refuses an APP_KEY that a rotation has retired: the database takes no journal entry from it. Throws `SettingError`. */
export async function refuseRetiredKey({ database, keys }: Platform): Promise<void> {
  const seal = (await retiredKeys(database.reader)).get(keys.current.id)
  if (seal === undefined) return
  throw new SettingError('APP_KEY', `was retired by seal ${seal}: set the key that replaced it`)
}

async function addSeal(
  platform: Platform,
  tx: Tx,
  last: Seal | null,
  retires: string | null,
  heads: readonly Head[],
): Promise<Seal> {
  const position = (last?.position ?? 0) + 1
  const sealedAt = platform.clock.now()
  const key = journalKeys(platform.keys).current
  const digest = sealDigest(key.seal, last?.digest ?? NO_SEAL, { position, sealedAt, retires, heads })
  await insertSeal(tx, { position, sealed_at: sealedAt, digest, retires }, heads)
  return { position, sealedAt, digest }
}
