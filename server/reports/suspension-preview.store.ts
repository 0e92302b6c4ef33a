import { sql } from 'kysely'
import type { Queries } from '../platform/database/database.ts'

export interface Amounts {
  count: number
  /** Paisa. */
  amount: number
}

const COUNT = sql<number>`count(*)`.as('count')

/** Runs a query of one count. */
async function countOf(query: { executeTakeFirstOrThrow(): Promise<{ count: number }> }): Promise<number> {
  return (await query.executeTakeFirstOrThrow()).count
}

export function countSessions(db: Queries, userId: string, now: number): Promise<number> {
  const sessions = db.selectFrom('sessions').select(COUNT)
  return countOf(sessions.where('user_id', '=', userId).where('expires_at', '>', now))
}

/** The links of a creator, or to a merchant's offers. */
export function countLinks(
  db: Queries,
  party: 'creator_id' | 'merchant_id',
  userId: string,
): Promise<number> {
  return countOf(db.selectFrom('affiliate_links').select(COUNT).where(party, '=', userId))
}

export function countPendingApplications(
  db: Queries,
  party: 'creator_id' | 'merchant_id',
  userId: string,
): Promise<number> {
  const applications = db.selectFrom('applications').select(COUNT)
  return countOf(applications.where(party, '=', userId).where('status', '=', 'pending'))
}

export function countLiveOffers(db: Queries, merchantId: string): Promise<number> {
  const offers = db.selectFrom('offers').select(COUNT)
  return countOf(offers.where('merchant_id', '=', merchantId).where('status', '=', 'live'))
}

export function countStores(db: Queries, merchantId: string): Promise<number> {
  const stores = db.selectFrom('stores').select(COUNT)
  return countOf(stores.where('merchant_id', '=', merchantId).where('removed_at', 'is', null))
}

/** A creator's payouts that have no outcome yet, by state. */
export async function payoutsUnderWay(
  db: Queries,
  creatorId: string,
): Promise<{ pending: Amounts; submitted: Amounts }> {
  const rows = await db
    .selectFrom('payouts')
    .select(['state', COUNT, sql<number>`sum(amount)`.as('amount')])
    .where('creator_id', '=', creatorId)
    .where('state', 'in', ['pending', 'submitted'])
    .groupBy('state')
    .execute()
  const of = (state: 'pending' | 'submitted') => {
    const row = rows.find((one) => one.state === state)
    return { count: row?.count ?? 0, amount: row?.amount ?? 0 }
  }
  return { pending: of('pending'), submitted: of('submitted') }
}

/** A merchant's cycles that are not paid: what has come together so far, or is due. */
export async function unpaidCycles(
  db: Queries,
  merchantId: string,
): Promise<{ open: Amounts; closed: Amounts }> {
  const rows = await db
    .selectFrom('billing_cycles')
    .select(['state', COUNT])
    .select(sql<number>`sum(commission_total + fee_total)`.as('running'))
    .select(sql<number>`sum(amount_due)`.as('due'))
    .where('merchant_id', '=', merchantId)
    .where('state', 'in', ['open', 'closed'])
    .groupBy('state')
    .execute()
  const open = rows.find((row) => row.state === 'open')
  const closed = rows.find((row) => row.state === 'closed')
  return {
    open: { count: open?.count ?? 0, amount: open?.running ?? 0 },
    closed: { count: closed?.count ?? 0, amount: closed?.due ?? 0 },
  }
}
