import type { Queries, Tx } from './database.ts'
import { type Binding, IntegrityError, isUnbound, UnknownKeyError, type Vault } from './vault.ts'

const MARK = 'app_key'
const SEALED_TEXT = 'sealed by the key of this database'
const BINDING: Binding = { purpose: 'app key check', row: MARK, owner: '', facts: [] }

/**
 * What the mark in the database says of the keys at hand:
 * `absent`: no start has left one; `unbound`: values that are bound to no row are still accepted, because
 * `affiliate keys rotate` has not run since the upgrade; `former`, `current`: which key opens it; `foreign`: none does.
 */
export type KeyState = 'absent' | 'unbound' | 'former' | 'current' | 'foreign'

/** What the database says of the keys at hand; reads only. */
export async function keyStateOf(db: Queries | Tx, vault: Vault): Promise<KeyState> {
  const mark = await readMark(db)
  return mark === undefined ? 'absent' : keyStateOfMark(mark, vault)
}

export async function readMark(db: Queries | Tx): Promise<string | undefined> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', MARK).executeTakeFirst()
  return row?.value
}

export function keyStateOfMark(mark: string, vault: Vault): KeyState {
  const unbound = isUnbound(mark)
  try {
    const text = unbound ? vault.openUnbound(mark, BINDING.purpose) : vault.open(mark, BINDING)
    if (text !== SEALED_TEXT) return 'foreign'
    if (unbound) return 'unbound'
    return vault.isCurrent(mark) ? 'current' : 'former'
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return 'foreign'
    throw error
  }
}

/** The id of the key that a mark was sealed with, where it is not in the ring and the mark names it. */
export function missingKeyOf(mark: string, vault: Vault): string | null {
  try {
    vault.open(mark, BINDING)
  } catch (error) {
    if (error instanceof UnknownKeyError) return error.keyId
  }
  return null
}

/** Leaves a mark, sealed with the current key, unless there is one; answers the one that stands. */
export async function leaveMark(tx: Tx, vault: Vault): Promise<string> {
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value: vault.seal(SEALED_TEXT, BINDING) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readMark(tx)) ?? ''
}

/** Seals the mark anew with the current key, bound: from then on unbound values are refused. */
export async function renewMark(tx: Tx, vault: Vault): Promise<void> {
  const value = vault.seal(SEALED_TEXT, BINDING)
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

/**
 * Opens a sealed column. An unbound value is accepted only while the database's mark is itself one of that time: only
 * the key can make such a mark, so that a missing or changed one never lets unbound values in.
 * Throws `IntegrityError` and `UnknownKeyError`.
 */
export async function openSealed(
  db: Queries | Tx,
  vault: Vault,
  sealed: string,
  binding: Binding,
): Promise<string> {
  if (isUnbound(sealed) && (await keyStateOf(db, vault)) === 'unbound') {
    return vault.openUnbound(sealed, binding.purpose)
  }
  return vault.open(sealed, binding)
}
