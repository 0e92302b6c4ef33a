import type { Queries, Tx } from '../platform/database/database.ts'

/*
 * Creators' shares of billing cycles, for payouts: a share is released when its cycle is charged, and is then in at most one payout.
 */

/** The released balance that is in no payout, paisa, by creator. */
export function releasedByCreator(
  db: Queries,
  creatorId: string | null = null,
): Promise<{ creator_id: string; released: number }[]> {
  return db
    .selectFrom('billing_cycle_shares')
    .select((query) => ['creator_id', query.fn.sum<number>('commission').as('released')])
    .where('released_at', 'is not', null)
    .where('payout_id', 'is', null)
    .$if(creatorId !== null, (query) => query.where('creator_id', '=', creatorId ?? ''))
    .groupBy('creator_id')
    .orderBy('creator_id')
    .execute()
}

export interface PayableShare {
  billing_cycle_id: string
  merchant_id: string
  commission: number
}

/** A creator's released shares that are in no payout, locked until the transaction ends. */
export function lockPayableShares(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  creatorId: string,
): Promise<PayableShare[]> {
  return tx
    .selectFrom('billing_cycle_shares as share')
    .innerJoin('billing_cycles as cycle', 'cycle.id', 'share.billing_cycle_id')
    .select(['share.billing_cycle_id', 'cycle.merchant_id', 'share.commission'])
    .where('share.creator_id', '=', creatorId)
    .where('share.released_at', 'is not', null)
    .where('share.payout_id', 'is', null)
    .orderBy('share.billing_cycle_id')
    .$if(dialect === 'postgresql', (query) => query.forUpdate('share'))
    .execute()
}

/** Assigns free shares to a payout. Returns how many were free. */
export async function takeShares(
  tx: Tx,
  creatorId: string,
  cycleIds: readonly string[],
  payoutId: string,
): Promise<number> {
  const taken = await tx
    .updateTable('billing_cycle_shares')
    .set({ payout_id: payoutId })
    .where('creator_id', '=', creatorId)
    .where('billing_cycle_id', 'in', cycleIds)
    .where('payout_id', 'is', null)
    .executeTakeFirst()
  return Number(taken.numUpdatedRows)
}

/** Releases the shares of a failed payout for the next one. */
export async function freeShares(tx: Tx, payoutId: string): Promise<void> {
  await tx
    .updateTable('billing_cycle_shares')
    .set({ payout_id: null })
    .where('payout_id', '=', payoutId)
    .execute()
}
