import type { Queries, Tx } from '../platform/database/database.ts'

/**
 * How far a watch has come in a table that it works through by id, held until the transaction ends so that two workers take
 * turns. `initial` where it has not begun yet.
 */
export async function lockWatermark(tx: Tx, name: string, initial: string): Promise<string> {
  await tx
    .insertInto('watermarks')
    .values({ name, value: initial })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  const { value } = await tx
    .updateTable('watermarks')
    .set((eb) => ({ value: eb.ref('value') }))
    .where('name', '=', name)
    .returning('value')
    .executeTakeFirstOrThrow()
  return value
}

export async function moveWatermark(tx: Tx, name: string, to: string): Promise<void> {
  await tx.updateTable('watermarks').set({ value: to }).where('name', '=', name).execute()
}

export async function readWatermark(db: Queries, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}

export async function setWatermark(tx: Tx, name: string, value: string): Promise<void> {
  await tx
    .insertInto('watermarks')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

/** Answers whether there was one. */
export async function deleteWatermark(tx: Tx, name: string): Promise<boolean> {
  const deleted = await tx.deleteFrom('watermarks').where('name', '=', name).executeTakeFirst()
  return deleted.numDeletedRows > 0n
}
