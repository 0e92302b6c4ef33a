import type { Queries, Tx } from '../platform/database.ts'

export interface DestinationRow {
  id: string
  user_id: string
  iban_encrypted: string
  iban_fingerprint: string
  iban_last4: string
  account_title: string
  effective_at: number
  created_at: number
}

export async function insertDestination(tx: Tx, row: DestinationRow): Promise<void> {
  await tx.insertInto('payout_destinations').values(row).execute()
}

/** Everyone's destinations after the id `after`, in the order of their ids. */
export function destinationsAfter(
  db: Queries,
  after: string | null,
  limit: number,
): Promise<DestinationRow[]> {
  return db
    .selectFrom('payout_destinations')
    .selectAll()
    .$if(after !== null, (query) => query.where('id', '>', after ?? ''))
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Replaces a destination's encrypted columns, unless they changed since it was read; whether it did. */
export async function resealDestination(
  tx: Tx,
  row: DestinationRow,
  sealed: Pick<DestinationRow, 'iban_encrypted' | 'iban_fingerprint'>,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('payout_destinations')
    .set(sealed)
    .where('id', '=', row.id)
    .where('iban_encrypted', '=', row.iban_encrypted)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Every destination that these users ever gave, in the order in which they were given. */
export function findDestinations(db: Queries, userIds: readonly string[]): Promise<DestinationRow[]> {
  if (userIds.length === 0) return Promise.resolve([])
  return db
    .selectFrom('payout_destinations')
    .select([
      'id',
      'user_id',
      'iban_encrypted',
      'iban_fingerprint',
      'iban_last4',
      'account_title',
      'effective_at',
      'created_at',
    ])
    .where('user_id', 'in', userIds)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}
