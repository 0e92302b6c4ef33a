import { type SqlBool, sql } from 'kysely'
import type { Paisa } from '../../shared/money.ts'
import { valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'

/*
 * Creators' shares of billing cycles, for payouts: a share is released when its cycle is charged. Payouts carry it whole or in parts; the
 * parts in payouts that have not failed add up to at most the share.
 */

/** The condition of the index `billing_cycle_shares_payable`. */
const IS_FREE = sql<SqlBool>`released_at is not null and carried < commission`

/** The released balance that is in no payout, paisa, by creator. */
export function releasedByCreator(db: Queries, creatorId: string | null = null) {
  return db
    .selectFrom('billing_cycle_shares')
    .select(['creator_id', sql<number>`sum(commission - carried)`.as('released')])
    .where(IS_FREE)
    .$if(creatorId !== null, (query) => query.where('creator_id', '=', creatorId ?? ''))
    .groupBy('creator_id')
    .orderBy('creator_id')
    .execute()
}

export type PayableShare = Awaited<ReturnType<typeof lockPayableShares>>[number]

/** A creator's released shares with a part that is in no payout (`free`, paisa), locked until the transaction ends. */
export function lockPayableShares(tx: Tx, creatorId: string) {
  return tx
    .selectFrom('billing_cycle_shares as share')
    .innerJoin('billing_cycles as cycle', 'cycle.id', 'share.billing_cycle_id')
    .select(['share.billing_cycle_id', 'cycle.merchant_id'])
    .select(sql<number>`share.commission - share.carried`.as('free'))
    .where('share.creator_id', '=', creatorId)
    .where(IS_FREE)
    .orderBy('share.billing_cycle_id')
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate('share'))
    .execute()
}

/** The part of a share that a payout carries. */
export interface CarriedPart {
  billing_cycle_id: string
  amount: Paisa
}

const moves = valuesTable<CarriedPart>('moved', { billing_cycle_id: 'uuid', amount: 'bigint' })

/**
 * Puts parts of free shares into a payout, or with `freed` releases for the next one what a failed payout carried. The caller has
 * locked the shares or the payout.
 */
export async function moveShares(
  tx: Tx,
  creatorId: string,
  parts: readonly CarriedPart[],
  to: 'carried' | 'freed',
): Promise<void> {
  const sign = to === 'carried' ? 1 : -1
  const moved = parts.map(({ billing_cycle_id, amount }) => ({ billing_cycle_id, amount: sign * amount }))
  const { numAffectedRows } = await sql`
    update billing_cycle_shares as share set carried = share.carried + moved.amount
    from ${moves(dialectOf(tx), moved)}
    where share.billing_cycle_id = moved.billing_cycle_id and share.creator_id = ${creatorId}
      and share.carried + moved.amount between 0 and share.commission`.execute(tx)
  if (Number(numAffectedRows) !== parts.length) throw new Error('a share does not hold this part')
}
