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
