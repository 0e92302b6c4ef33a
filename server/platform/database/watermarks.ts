import { sql } from 'kysely'
import type { Queries, Tx } from './database.ts'

/*
 * The table `watermarks` holds small facts about the service itself by name. Each concept uses its own names: how far a job has
 * come, which key sealed the secrets.
 */

export async function readWatermark(db: Queries | Tx, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}

/** The value, locked until the transaction ends, so that workers take turns; `initial` if there was none. */
export async function lockWatermark(tx: Tx, name: string, initial: string): Promise<string> {
  const { rows } = await sql<{ value: string }>`
    insert into watermarks (name, value) values (${name}, ${initial})
    on conflict (name) do update set value = watermarks.value returning value`.execute(tx)
  return rows[0]?.value ?? initial
}

export async function setWatermark(tx: Tx, name: string, value: string): Promise<void> {
  await tx
    .insertInto('watermarks')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

/** Returns whether there was one. */
export async function deleteWatermark(tx: Tx, name: string): Promise<boolean> {
  const deleted = await tx.deleteFrom('watermarks').where('name', '=', name).executeTakeFirst()
  return deleted.numDeletedRows > 0n
}
