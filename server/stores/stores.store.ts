import { type Selectable, sql } from 'kysely'
import { ORDER_SOURCES } from '../../shared/schemas/stores.ts'
import { countOf, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { changeRow, lockRows } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { RefusalReason } from './store.entity.ts'
import { REGULAR_SPAN_DAYS } from './store-status.rule.ts'

export type StoreRow = Selectable<Schema['stores']>
export type StoreSecretRow = Selectable<Schema['store_secrets']>

/** All claims on a domain, removed ones too, oldest first. */
export function claimsOnDomain(db: Queries | Tx, domain: string): Promise<StoreRow[]> {
  return db.selectFrom('stores').selectAll().where('shop_domain', '=', domain).orderBy('id').execute()
}

/** Sets `first_event_at` (epoch ms) of stores in use that have none; returns the stores it changed. */
export function markFirstEvent(tx: Tx, storeIds: readonly string[], at: number): Promise<StoreRow[]> {
  return tx
    .updateTable('stores')
    .set({ first_event_at: at })
    .where('id', 'in', storeIds)
    .where('first_event_at', 'is', null)
    .where('removed_at', 'is', null)
    .returningAll()
    .execute()
}

/** The merchant's store in use. */
export function ownStore(db: Queries, merchantId: string, storeId: string): Promise<StoreRow | undefined> {
  return db
    .selectFrom('stores')
    .selectAll()
    .where('id', '=', storeId)
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
    .executeTakeFirst()
}

/** The merchant's stores in use, newest first, after the id `after`. */
export function storesOf(
  db: Queries,
  merchantId: string,
  after: string | null,
  limit: number,
): Promise<StoreRow[]> {
  let query = db
    .selectFrom('stores')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('removed_at', 'is', null)
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

/** Every merchant's stores, removed ones too, newest first: for operators. */
export function everyStore(db: Queries, after: string | null, limit: number): Promise<StoreRow[]> {
  let query = db.selectFrom('stores').selectAll()
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

export function countStoresInUse(db: Queries | Tx, merchantId: string): Promise<number> {
  return countOf(
    db.selectFrom('stores').where('merchant_id', '=', merchantId).where('removed_at', 'is', null),
  )
}

export function secretsByFingerprint(tx: Tx, fingerprints: readonly string[]): Promise<StoreSecretRow[]> {
  return tx.selectFrom('store_secrets').selectAll().where('fingerprint', 'in', fingerprints).execute()
}

/** Secrets by store id: the present one first, then former ones from the newest. */
export async function secretsOfStores(
  db: Queries | Tx,
  storeIds: readonly string[],
): Promise<Map<string, StoreSecretRow[]>> {
  if (storeIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('store_secrets')
    .selectAll()
    .where('store_id', 'in', storeIds)
    .orderBy(sql`valid_until is not null`)
    .orderBy('id', 'desc')
    .execute()
  return Map.groupBy(rows, (row) => row.store_id)
}

/** A secret with its store's merchant and domain. */
export type OwnedSecretRow = StoreSecretRow & Pick<StoreRow, 'merchant_id' | 'shop_domain'>

/** Selects all stores' secrets; see `Sealing.rows`. */
export const ALL_SECRETS = sql`select sealed.*, stores.merchant_id, stores.shop_domain
  from store_secrets as sealed join stores on stores.id = sealed.store_id`

export async function insertSecret(tx: Tx, row: StoreSecretRow): Promise<void> {
  await tx.insertInto('store_secrets').values(row).execute()
}

export async function replaceSecret(tx: Tx, row: StoreSecretRow): Promise<void> {
  await tx.updateTable('store_secrets').set(row).where('id', '=', row.id).execute()
}

export async function deleteSecrets(tx: Tx, rows: readonly StoreSecretRow[]): Promise<void> {
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) await tx.deleteFrom('store_secrets').where('id', 'in', ids).execute()
}

export function storesById(db: Queries, storeIds: readonly string[]): Promise<StoreRow[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  return db.selectFrom('stores').selectAll().where('id', 'in', storeIds).execute()
}

/** The host names that these stores' orders have shown. */
export function hostsOfStores(
  db: Queries | Tx,
  storeIds: readonly string[],
): Promise<{ store_id: string; host: string }[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  return db
    .selectFrom('store_hosts')
    .select(['store_id', 'host'])
    .where('store_id', 'in', storeIds)
    .orderBy('host')
    .execute()
}

export async function insertHosts(
  tx: Tx,
  rows: readonly { store_id: string; host: string; created_at: number }[],
): Promise<void> {
  if (rows.length === 0) return
  await tx
    .insertInto('store_hosts')
    .values([...rows])
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export type StoreDayRow = Selectable<Schema['store_days']>

const addedDays = valuesTable<StoreDayRow>('added', {
  store_id: 'uuid',
  day: 'int',
  cart: 'int',
  landing: 'int',
  line: 'int',
  coupon: 'int',
  none: 'int',
  last_event_at: 'bigint',
})

const ADD_SOURCES = sql.raw(
  ORDER_SOURCES.map((source) => `${source} = store_days.${source} + excluded.${source}`).join(', '),
)

/** Adds these orders and events to what is stored of the same stores and days. */
export async function addToStoreDays(tx: Tx, rows: readonly StoreDayRow[]): Promise<void> {
  if (rows.length === 0) return
  await sql`
    insert into store_days (store_id, day, cart, landing, line, coupon, none, last_event_at)
    select store_id, day, cart, landing, line, coupon, none, last_event_at
    from ${addedDays(dialectOf(tx), rows)}
    where true
    on conflict (store_id, day) do update set ${ADD_SOURCES},
      last_event_at = case when excluded.last_event_at > store_days.last_event_at
        then excluded.last_event_at else store_days.last_event_at end`.execute(tx)
}

/** The days of these stores from `fromDay` on, and the 28 days up to the last day of each. Oldest first. */
export function daysOfStores(
  db: Queries | Tx,
  storeIds: readonly string[],
  fromDay: number,
): Promise<StoreDayRow[]> {
  if (storeIds.length === 0) return Promise.resolve([])
  const lastDays = db
    .selectFrom('store_days')
    .select(({ fn }) => ['store_id', fn.max<number>('day').as('last_day')])
    .where('store_id', 'in', storeIds)
    .groupBy('store_id')
  return db
    .selectFrom('store_days as one')
    .innerJoin(lastDays.as('last'), 'last.store_id', 'one.store_id')
    .selectAll('one')
    .where((where) =>
      where.or([
        where('one.day', '>=', fromDay),
        where('one.day', '>', where('last.last_day', '-', REGULAR_SPAN_DAYS)),
      ]),
    )
    .orderBy('one.day')
    .execute()
}

/** Stores in use that sent something from `fromDay` on, by id after the id `after`. */
export function storesActiveSince(
  db: Queries,
  fromDay: number,
  after: string,
  limit: number,
): Promise<StoreRow[]> {
  return db
    .selectFrom('stores')
    .selectAll()
    .where('removed_at', 'is', null)
    .where('id', '>', after)
    .where((where) =>
      where.exists(
        where
          .selectFrom('store_days')
          .select('day')
          .whereRef('store_days.store_id', '=', 'stores.id')
          .where('day', '>=', fromDay),
      ),
    )
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Refusals of one domain's deliveries without a valid one among them. Times in epoch ms. */
export interface RefusalsRow {
  domain: string
  first_at: number
  last_at: number
  reason: RefusalReason
  times: number
}

const refusals = valuesTable<RefusalsRow>('refused', {
  domain: 'text',
  first_at: 'bigint',
  last_at: 'bigint',
  reason: 'text',
  times: 'int',
})

/** Notes refusals on every claim in use, counting on from former ones unless a signed event was applied since. */
export async function noteRefused(tx: Tx, rows: readonly RefusalsRow[]): Promise<void> {
  const goesOn = sql`stores.refused_since is not null and not exists (
    select 1 from store_days where store_days.store_id = stores.id and last_event_at > stores.refused_since)`
  await sql`
    update stores set last_refused_at = refused.last_at, last_refusal = refused.reason,
      refused_since = case when ${goesOn} then stores.refused_since else refused.first_at end,
      refused_count = case when ${goesOn} then stores.refused_count else 0 end + refused.times
    from ${refusals(dialectOf(tx), rows)}
    where shop_domain = refused.domain and removed_at is null`.execute(tx)
}

/** Stores in use with refusals that no one has looked at since, by id after the id `after`. */
export function refusedStores(db: Queries | Tx, after: string, limit: number): Promise<StoreRow[]> {
  return db
    .selectFrom('stores')
    .selectAll()
    .where('refused_since', 'is not', null)
    .where('removed_at', 'is', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** These stores in use, locked until the transaction ends. Throws `TamperedRow` and `UnknownKeyError`. */
export function lockStores(tx: Tx, storeIds: readonly string[]): Promise<readonly StoreRow[]> {
  return lockRows(tx, 'stores', sql`id in (${sql.join(storeIds)}) and removed_at is null`)
}

/** Records on a locked store what was done about its refused deliveries. */
export function noteRefusalSteps(
  tx: Tx,
  store: StoreRow,
  steps: Partial<Pick<StoreRow, 'refused_since' | 'refused_count' | 'rejecting_sent_at'>>,
): Promise<void> {
  return changeRow(tx, 'stores', store, steps)
}

export type UnclaimedDomainRow = Selectable<Schema['unclaimed_domains']>

const unclaimed = valuesTable<UnclaimedDomainRow>('added', {
  shop_domain: 'text',
  deliveries: 'int',
  first_at: 'bigint',
  last_at: 'bigint',
})

/** Adds these counts; keeps `most` domains by count and the newest `most`. */
export async function addUnclaimed(
  tx: Tx,
  rows: readonly UnclaimedDomainRow[],
  { most, keptSince }: { most: number; keptSince: number },
): Promise<void> {
  await sql`
    insert into unclaimed_domains (shop_domain, deliveries, first_at, last_at)
    select shop_domain, deliveries, first_at, last_at from ${unclaimed(dialectOf(tx), rows)}
    where true
    on conflict (shop_domain) do update set last_at = excluded.last_at,
      deliveries = case when unclaimed_domains.deliveries < 1000000000
        then unclaimed_domains.deliveries + excluded.deliveries else unclaimed_domains.deliveries end`.execute(
    tx,
  )
  const first = (column: 'deliveries' | 'last_at') =>
    tx
      .selectFrom('unclaimed_domains')
      .select('shop_domain')
      .orderBy(column, 'desc')
      .orderBy('shop_domain')
      .limit(most)
  await tx
    .deleteFrom('unclaimed_domains')
    .where((where) =>
      where.or([
        where('last_at', '<', keptSince),
        where.and([
          where('shop_domain', 'not in', first('deliveries')),
          where('shop_domain', 'not in', first('last_at')),
        ]),
      ]),
    )
    .execute()
}

/** Counted domains that no merchant claims now, most deliveries first; of one domain if given. */
export function unclaimedDomains(db: Queries, domain?: string): Promise<UnclaimedDomainRow[]> {
  return db
    .selectFrom('unclaimed_domains as counted')
    .selectAll()
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('stores')
            .select('id')
            .whereRef('stores.shop_domain', '=', 'counted.shop_domain')
            .where('removed_at', 'is', null),
        ),
      ),
    )
    .$if(domain !== undefined, (query) => query.where('shop_domain', '=', domain ?? ''))
    .orderBy('deliveries', 'desc')
    .orderBy('shop_domain')
    .execute()
}
