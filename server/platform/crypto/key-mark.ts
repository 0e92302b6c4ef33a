import type { Queries, Tx } from '../database/database.ts'
import { readWatermark, setWatermark } from '../database/watermarks.ts'
import { type Binding, IntegrityError, isUnbound, UnknownKeyError, type Vault } from './vault.ts'

const MARK = 'app_key'
const BINDING: Binding = { purpose: 'app key check', row: MARK, owner: '', facts: [] }
/** The text of a mark of the first format. */
const FIRST_TEXT = 'sealed by the key of this database'

/**
 * What an older database may still hold: sealed values that are not bound to a row, until `affiliate keys rotate` binds them, and journal
 * entries without a key, until the journal is keyed.
 */
export type Legacy = 'unbound_values' | 'unkeyed_journal'

const LEGACIES: readonly Legacy[] = ['unbound_values', 'unkeyed_journal']

/**
 * The mark in the database, which only the key can make. It names the key and the legacy values that the database may still hold. Without a
 * mark no legacy value is accepted. A database writer without the key can only delete the mark or restore an old copy.
 */
export interface KeyMark {
  /**
   * `foreign`: made by none of the current and former keys, or changed, or made by a former key while unbound values were accepted (a key
   * may be replaced only after all values are bound).
   */
  key: 'current' | 'former' | 'foreign'
  accepts: readonly Legacy[]
}

/** Reads the mark with the current and former keys; `null` before the first start. */
export async function readKeyMark(db: Queries | Tx, vault: Vault): Promise<KeyMark | null> {
  const mark = await readMark(db)
  return mark === undefined ? null : keyMarkOf(mark, vault)
}

export function keyMarkOf(mark: string, vault: Vault): KeyMark {
  try {
    if (isUnbound(mark)) return { key: 'current', accepts: openFirst(mark, vault) }
    const accepts = parseAccepts(vault.open(mark, BINDING))
    if (vault.isCurrent(mark)) return { key: 'current', accepts }
    return accepts.includes('unbound_values') ? { key: 'foreign', accepts: [] } : { key: 'former', accepts }
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) {
      return { key: 'foreign', accepts: [] }
    }
    throw error
  }
}

/** A mark of the first format accepts every legacy value. */
function openFirst(mark: string, vault: Vault): readonly Legacy[] {
  if (vault.openUnbound(mark, BINDING.purpose) !== FIRST_TEXT) throw new IntegrityError('is no mark')
  return LEGACIES
}

function parseAccepts(text: string): Legacy[] {
  const names = text.split(' ')
  return LEGACIES.filter((legacy) => names.includes(legacy))
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

/** Writes a mark that accepts no legacy value, unless there is one; returns the stored mark. */
export async function leaveMark(tx: Tx, vault: Vault): Promise<string> {
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value: vault.seal('', BINDING) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readMark(tx)) ?? ''
}

/** Replaces the mark with one of the current key that refuses `ended`. The caller has checked that no such value is left. */
export async function renewMark(tx: Tx, vault: Vault, ended: Legacy): Promise<void> {
  const mark = await readKeyMark(tx, vault)
  const accepts = (mark?.accepts ?? []).filter((legacy) => legacy !== ended)
  await setWatermark(tx, MARK, vault.seal(accepts.join(' '), BINDING))
}

/** Whether the journal may hold entries without a key. */
export function isJournalUnkeyed(db: Queries | Tx, vault: Vault): Promise<boolean> {
  return accepts(db, vault, 'unkeyed_journal')
}

/** Refuses unkeyed entries from now on. Call it in the transaction that keys the journal. */
export function markJournalKeyed(tx: Tx, vault: Vault): Promise<void> {
  return renewMark(tx, vault, 'unkeyed_journal')
}

async function accepts(db: Queries | Tx, vault: Vault, legacy: Legacy): Promise<boolean> {
  const mark = await readKeyMark(db, vault)
  return mark?.accepts.includes(legacy) ?? false
}

/** Opens a sealed column; an unbound value only while the mark accepts them. Throws `IntegrityError` and `UnknownKeyError`. */
export async function openSealed(
  db: Queries | Tx,
  vault: Vault,
  sealed: string,
  binding: Binding,
): Promise<string> {
  if (isUnbound(sealed) && (await accepts(db, vault, 'unbound_values'))) {
    return vault.openUnbound(sealed, binding.purpose)
  }
  return vault.open(sealed, binding)
}
