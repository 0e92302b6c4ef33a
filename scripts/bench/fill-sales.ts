import { sql } from 'kysely'
import { insertRows } from '../../server/platform/database/protected-rows.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { addMerchant, storeIdOf } from '../../server/test/testkit/listings.ts'
import { addUser } from '../../server/test/testkit/people.ts'

/** Of every generated sale, paisa. */
const NET = 100_000
const COMMISSION = 12_500
const FEE = 1250

export interface Sellers {
  merchantId: string
  storeId: string
}

/** Merchants with stores, for sales that are made by the database itself. */
export async function addSellers(platform: Platform, count: number): Promise<Sellers[]> {
  const sellers: Sellers[] = []
  for (let index = 0; index < count; index += 1) {
    const { userId } = await addMerchant(platform)
    sellers.push({ merchantId: userId, storeId: await storeIdOf(platform, userId) })
  }
  return sellers
}

/** An open cycle that ends at `periodEnd` (epoch ms) for each, with totals and one share as that many sales make them. */
export async function openCycles(
  platform: Platform,
  sellers: readonly Sellers[],
  period: { start: number; end: number },
  salesEach: number,
): Promise<void> {
  const creator = await addUser(platform, 'creator')
  const cycles = sellers.map(({ merchantId }) => ({
    id: platform.ids.next(),
    merchant_id: merchantId,
    state: 'open' as const,
    period_start: period.start,
    period_end: period.end,
    sales_count: salesEach,
    commission_total: salesEach * COMMISSION,
    fee_total: salesEach * FEE,
    credit_total: 0,
    amount_due: 0,
    created_at: period.start,
  }))
  const shares = cycles.map((cycle) => ({
    billing_cycle_id: cycle.id,
    creator_id: creator.userId,
    sales_count: salesEach,
    commission: cycle.commission_total,
  }))
  await platform.database.transaction(async (tx) => {
    await insertRows(tx, 'billing_cycles', cycles)
    await tx.insertInto('billing_cycle_shares').values(shares).execute()
  })
}

/** So many at a time that on a busy machine no statement outlasts the timeout of one. */
const SALES_A_PART = 100_000

interface Sales {
  /** How many cycles are open that begin at `start` (epoch ms). */
  cycles: number
  start: number
  /** So many for each of those cycles. */
  each: number
  /** Their ids count up from here. */
  from: number
}

/** Adds accepted sales to open cycles. */
export async function addSales(platform: Platform, { cycles, start, each, from }: Sales): Promise<void> {
  const most = Math.max(1, Math.floor(SALES_A_PART / cycles))
  for (let done = 0; done < each; done += most) {
    await addPart(platform, start, Math.min(most, each - done), from + done * cycles)
  }
}

async function addPart(platform: Platform, start: number, each: number, from: number): Promise<void> {
  const { database } = platform
  const numbers =
    database.dialect === 'sqlite'
      ? sql`(with recursive count(n) as (select 1 union all select n + 1 from count where n < ${each}) select n from count) as line`
      : sql`generate_series(1, ${sql.lit(each)}) as line(n)`
  const number = sql`(${sql.lit(from)} + (row_number() over ()))`
  const id = (prefix: string) =>
    database.dialect === 'sqlite'
      ? sql`printf(${sql.lit(`${prefix}-7000-8000-%012x`)}, ${number})`
      : sql`cast(${sql.lit(`${prefix}-7000-8000-`)} || lpad(to_hex(cast(${number} as bigint)), 12, '0') as uuid)`
  await database.transaction((tx) =>
    sql`insert into sales (id, store_id, merchant_id, order_id, order_name, acceptance_status, offer_id, creator_id, link_id,
        click_id, net_amount, commission_rate, commission, platform_fee, billing_cycle_id, ordered_at, created_at, event_id, receipt)
      select ${id('01900000-0000')}, store.id, cycle.merchant_id, ${number}, '#' || ${number}, 'accepted', cycle.merchant_id,
        share.creator_id, null, cycle.merchant_id, ${sql.lit(NET)}, 1250, ${sql.lit(COMMISSION)}, ${sql.lit(FEE)},
        cycle.id, cycle.period_start, cycle.period_start, cycle.id, '{}'
      from ${numbers} cross join billing_cycles as cycle
      join stores as store on store.merchant_id = cycle.merchant_id
      join billing_cycle_shares as share on share.billing_cycle_id = cycle.id
      where cycle.state = 'open' and cycle.period_start = ${sql.lit(start)}`.execute(tx),
  )
}
