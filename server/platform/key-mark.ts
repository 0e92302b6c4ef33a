import type { Queries, Tx } from './database.ts'
import { type Binding, IntegrityError, isUnbound, UnknownKeyError, type Vault } from './vault.ts'

const MARK = 'app_key'
const BINDING: Binding = { purpose: 'app key check', row: MARK, owner: '', facts: [] }
/** What a mark of the first format says. */
const FIRST_TEXT = 'sealed by the key of this database'

/**
 * What a database from before may still hold: sealed values that are bound to no row, until `affiliate keys rotate`
 * binds them; journal entries without a key, until the journal's cut-over.
 */
export type Legacy = 'unbound_values' | 'unkeyed_journal'

const LEGACIES: readonly Legacy[] = ['unbound_values', 'unkeyed_journal']

/**
 * The mark in the database, which only its key can make: which key that is, and what the database may still hold from
 * before. A database writer without the key can delete the mark or put back an old copy of it; without one nothing from
 * before is accepted.
 */
export interface KeyMark {
  /**
   * `foreign`: none of the current and former keys made it, or it was changed, or a former key made it while values were
   * bound to no row: they are bound before the key is replaced.
   */
  key: 'current' | 'former' | 'foreign'
  accepts: readonly Legacy[]
}

/** The database's mark as the current and former keys read it; `null` when no start has left one. Reads only. */
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

/** A mark of the first format was made before anything else was. */
function openFirst(mark: string, vault: Vault): readonly Legacy[] {
  if (vault.openUnbound(mark, BINDING.purpose) !== FIRST_TEXT) throw new IntegrityError('is no mark')
  return LEGACIES
}

function parseAccepts(text: string): Legacy[] {
  const names = text.split(' ')
  return LEGACIES.filter((legacy) => names.includes(legacy))
}

/** The raw mark, for the check at the start. */
export async function readMark(db: Queries | Tx): Promise<string | undefined> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', MARK).executeTakeFirst()
  return row?.value
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

/** Leaves a mark that accepts nothing from before, unless there is a mark; answers the one that stands. */
export async function leaveMark(tx: Tx, vault: Vault): Promise<string> {
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value: vault.seal('', BINDING) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await readMark(tx)) ?? ''
}

/** Replaces the mark with one of the current key; from then on `ended` is refused. The caller has made sure that none is left. */
export async function renewMark(tx: Tx, vault: Vault, ended: Legacy): Promise<void> {
  const mark = await readKeyMark(tx, vault)
  const accepts = (mark?.accepts ?? []).filter((legacy) => legacy !== ended)
  const value = vault.seal(accepts.join(' '), BINDING)
  await tx
    .insertInto('watermarks')
    .values({ name: MARK, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

/** Whether the journal may hold entries without a key. */
export function isJournalUnkeyed(db: Queries | Tx, vault: Vault): Promise<boolean> {
  return accepts(db, vault, 'unkeyed_journal')
}

/** Ends that, in the transaction that keys the journal. */
export function markJournalKeyed(tx: Tx, vault: Vault): Promise<void> {
  return renewMark(tx, vault, 'unkeyed_journal')
}

async function accepts(db: Queries | Tx, vault: Vault, legacy: Legacy): Promise<boolean> {
  const mark = await readKeyMark(db, vault)
  return mark?.accepts.includes(legacy) ?? false
}

/**
 * Opens a sealed column. A value that is bound to no row opens only while the mark accepts such values.
 * Throws `IntegrityError` and `UnknownKeyError`.
 */
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
