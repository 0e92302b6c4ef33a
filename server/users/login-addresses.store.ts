import type { Queries, Tx } from '../platform/database.ts'

/** Whether an account has logged in from an address since `since` (epoch ms). */
export async function hasLoggedInFrom(
  db: Queries,
  userId: string,
  addressHash: string,
  since: number,
): Promise<boolean> {
  const row = await db
    .selectFrom('login_addresses')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('address_hash', '=', addressHash)
    .where('used_at', '>=', since)
    .executeTakeFirst()
  return row !== undefined
}

export async function upsertLoginAddress(
  tx: Tx,
  row: { user_id: string; address_hash: string; used_at: number },
): Promise<void> {
  await tx
    .insertInto('login_addresses')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'address_hash']).doUpdateSet({ used_at: row.used_at }),
    )
    .execute()
}

/** Deletes an account's addresses but the `most` latest, and those last used before `since`. */
export async function pruneLoginAddresses(
  tx: Tx,
  userId: string,
  since: number,
  most: number,
): Promise<void> {
  const latest = tx
    .selectFrom('login_addresses')
    .select('address_hash')
    .where('user_id', '=', userId)
    .where('used_at', '>=', since)
    .orderBy('used_at', 'desc')
    .orderBy('address_hash')
    .limit(most)
  await tx
    .deleteFrom('login_addresses')
    .where('user_id', '=', userId)
    .where('address_hash', 'not in', latest)
    .execute()
}
