import type { Queries, Tx } from '../database/database.ts'
import { readWatermark, setWatermark } from '../database/watermarks.ts'
import { type Binding, IntegrityError, UnknownKeyError, type Vault } from './vault.ts'

const MARK = 'app_key'
const BINDING: Binding = { purpose: 'app key check', row: MARK, owner: '', facts: [] }

/**
 * Which key made the database's mark, which only a key can make; `foreign`: none of the current and former keys, or the mark was changed. A
 * database writer without the key can only delete the mark or restore an old copy.
 */
type KeyMark = 'current' | 'former' | 'foreign'

/** Reads the mark with the current and former keys; `null` before the first start. */
export async function readKeyMark(db: Queries | Tx, vault: Vault): Promise<KeyMark | null> {
  const mark = await readMark(db)
  return mark === undefined ? null : keyMarkOf(mark, vault)
}

export function keyMarkOf(mark: string, vault: Vault): KeyMark {
  try {
    vault.open(mark, BINDING)
    return vault.isCurrent(mark) ? 'current' : 'former'
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return 'foreign'
    throw error
  }
}

/** The raw mark, for the check at startup. */
export async function readMark(db: Queries | Tx): Promise<string | undefined> {
  return readWatermark(db, MARK)
}

/** The id of the key that a mark was sealed with, if the mark names one that is not in the ring. */
export function missingKeyOf(mark: string, vault: Vault): string | null {
  try {
    vault.open(mark, BINDING)
  } catch (error) {
    if (error instanceof UnknownKeyError) return error.keyId
  }
  return null
}

/** Writes a mark of the current key, unless there is one; returns the stored mark. */
export async function leaveMark(tx: Tx, vault: Vault): Promise<string> {
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value: vault.seal('', BINDING) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readMark(tx)) ?? ''
}

/** Replaces the mark with one of the current key. */
export function renewMark(tx: Tx, vault: Vault): Promise<void> {
  return setWatermark(tx, MARK, vault.seal('', BINDING))
}
