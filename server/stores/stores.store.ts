import { type Selectable, type SqlBool, sql } from 'kysely'
import { ORDER_SOURCES } from '../../shared/schemas/stores.ts'
import { countOf, inList, newestFirst, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { changeRow, lockRows } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { isId } from '../platform/ids.ts'
import type { RefusalReason } from './store.entity.ts'
import { REGULAR_SPAN_DAYS } from './store-status.rule.ts'

export type StoreRow = Selectable<Schema['stores']>
type StoreSecretRow = Selectable<Schema['store_secrets']>

const storesInUse = (db: Queries | Tx) => db.selectFrom('stores').selectAll().where('removed_at', 'is', null)

/** All claims on a domain, removed ones too, oldest first. */
export function claimsOnDomain(db: Queries | Tx, domain: string) {
  return db.selectFrom('stores').selectAll().where('shop_domain', '=', domain).orderBy('id').execute()
}

/** The claims in use on a domain, oldest first. */
export function claimsInUse(db: Queries | Tx, domain: string) {
  return storesInUse(db).where('shop_domain', '=', domain).orderBy('id').execute()
}

/** The claims in use that deliveries with this domain may belong to: those on it, then those moved from it. Up to `limit`. */
export function claimsReached(db: Queries, domain: string, limit: number) {
  return storesInUse(db)
    .where((where) => where.or([where('shop_domain', '=', domain), where('former_domain', '=', domain)]))
    .orderBy(sql`case when shop_domain = ${domain} then 0 else 1 end`)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Sets `first_event_at` (epoch ms) of stores in use that have none; returns the stores it changed. */
export function markFirstEvent(tx: Tx, storeIds: readonly string[], at: number) {
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
export function ownStore(db: Queries, merchantId: string, storeId: string) {
  const store = storesInUse(db).where('id', '=', storeId).where('merchant_id', '=', merchantId)
  return store.executeTakeFirst()
}

/** The merchant's stores in use, newest first; with `null` every merchant's, removed ones too. */
export function storesOf(
  db: Queries,
  merchantId: string | null,
  page: { before: string | null; limit: number },
) {
  return newestFirst(
    merchantId === null
      ? db.selectFrom('stores').selectAll()
      : storesInUse(db).where('merchant_id', '=', merchantId),
    page,
  )
}

/** For each of these stores the ids of its merchant's other ones, removed ones too. Stores without any are missing. */
export async function siblingStores(db: Queries | Tx, storeIds: readonly string[]) {
  const pairs = await db
    .selectFrom('stores as store')
    .innerJoin('stores as sibling', 'sibling.merchant_id', 'store.merchant_id')
    .select(['store.id', 'sibling.id as sibling_id'])
    .where(sql<SqlBool>`store.id ${inList(dialectOf(db), 'uuid', storeIds)}`)
    .whereRef('sibling.id', '<>', 'store.id')
    .execute()
  const grouped = Map.groupBy(pairs, ({ id }) => id)
  return new Map([...grouped].map(([id, of]) => [id, of.map(({ sibling_id }) => sibling_id)]))
}

/** The ids of all stores, removed ones too. */
export async function allStoreIds(db: Queries): Promise<string[]> {
  return (await db.selectFrom('stores').select('id').execute()).map(({ id }) => id)
}

/** The ids of a merchant's stores, removed ones too. */
export async function storeIdsOfMerchant(db: Queries, merchantId: string): Promise<string[]> {
  const rows = await db.selectFrom('stores').select('id').where('merchant_id', '=', merchantId).execute()
  return rows.map(({ id }) => id)
}

export function countStoresInUse(db: Queries | Tx, merchantId: string) {
  const ofMerchant = db.selectFrom('stores').where('merchant_id', '=', merchantId)
  return countOf(ofMerchant.where('removed_at', 'is', null))
}

export function secretsByFingerprint(tx: Tx, fingerprints: readonly string[]) {
  return tx.selectFrom('store_secrets').selectAll().where('fingerprint', 'in', fingerprints).execute()
}

/** A secret with its store's merchant and domain. */
export type OwnedSecretRow = StoreSecretRow & Pick<StoreRow, 'merchant_id' | 'shop_domain'>

/** Selects all stores' secrets; see `Sealing.rows`. */
export const OWNED_SECRETS = sql<OwnedSecretRow>`select sealed.*, stores.merchant_id, stores.shop_domain
  from store_secrets as sealed join stores on stores.id = sealed.store_id`

/** These stores' secrets: present ones first, then former ones from the newest. */
export async function secretsOf(db: Queries | Tx, storeIds: readonly string[]) {
  if (storeIds.length === 0) return []
  const { rows } = await sql<OwnedSecretRow>`
    ${OWNED_SECRETS} where store_id in (${sql.join(storeIds)})
    order by valid_until is not null, sealed.id desc`.execute(db)
  return rows
}

export async function insertSecret(tx: Tx, row: StoreSecretRow): Promise<void> {
  await tx.insertInto('store_secrets').values(row).execute()
}

export async function changeSecret(tx: Tx, id: string, change: Partial<StoreSecretRow>): Promise<void> {
  await tx.updateTable('store_secrets').set(change).where('id', '=', id).execute()
}

export async function deleteSecrets(tx: Tx, rows: readonly { id: string }[]): Promise<void> {
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) await tx.deleteFrom('store_secrets').where('id', 'in', ids).execute()
}

/** Stores by id, removed ones too, since their sales stay. Texts that are no ids are left out. */
export async function storesById(db: Queries, texts: readonly string[]) {
  const ids = texts.filter(isId)
  const query = db.selectFrom('stores').selectAll().where('id', 'in', ids)
  const stores = ids.length === 0 ? [] : await query.execute()
  return new Map(stores.map((store) => [store.id, store]))
}

/** The host names that a store's signed orders have shown. */
export function hostsOf({ own_hosts }: StoreRow): string[] {
  return own_hosts === null ? [] : (JSON.parse(own_hosts) as string[])
}

/** Stores what a locked store's signed orders have shown. */
export function setHosts(tx: Tx, store: StoreRow, hosts: readonly string[]) {
  return changeRow(tx, 'stores', store, { own_hosts: JSON.stringify(hosts) })
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
  paid_events: 'int',
  other_events: 'int',
  last_event_at: 'bigint',
})

const COUNTS = [...ORDER_SOURCES, 'paid_events', 'other_events']
const DAY_COLUMNS = sql.raw(['store_id', 'day', ...COUNTS, 'last_event_at'].join(', '))
const ADD_COUNTS = sql.raw(
  COUNTS.map((count) => `${count} = store_days.${count} + excluded.${count}`).join(', '),
)

/** Adds these orders and events to what is stored of the same stores and days. */
export async function addToStoreDays(tx: Tx, rows: readonly StoreDayRow[]): Promise<void> {
  if (rows.length === 0) return
  await sql`
    insert into store_days (${DAY_COLUMNS})
    select ${DAY_COLUMNS}
    from ${addedDays(dialectOf(tx), rows)}
    where true
    on conflict (store_id, day) do update set ${ADD_COUNTS},
      last_event_at = case when excluded.last_event_at > store_days.last_event_at
        then excluded.last_event_at else store_days.last_event_at end`.execute(tx)
}

/** The days of these stores from `fromDay` on, and the 28 days up to the last day of each. Oldest first. */
export async function daysOfStores(db: Queries | Tx, storeIds: readonly string[], fromDay: number) {
  if (storeIds.length === 0) return []
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
export function storesActiveSince(db: Queries, fromDay: number, after: string, limit: number) {
  const hasSent = sql<boolean>`exists (
    select 1 from store_days where store_days.store_id = stores.id and day >= ${fromDay})`
  return storesInUse(db).where('id', '>', after).where(hasSent).orderBy('id').limit(limit).execute()
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
    where (shop_domain = refused.domain or former_domain = refused.domain) and removed_at is null`.execute(tx)
}

/** Stores in use with refusals that no one has looked at since, by id after the id `after`. */
export function refusedStores(db: Queries | Tx, after: string, limit: number) {
  const refused = storesInUse(db).where('refused_since', 'is not', null)
  return refused.where('id', '>', after).orderBy('id').limit(limit).execute()
}

/** These stores in use, locked until the transaction ends. Throws `TamperedRow` and `UnknownKeyError`. */
export function lockStores(tx: Tx, storeIds: readonly string[]) {
  return lockRows(tx, 'stores', sql`id in (${sql.join(storeIds)}) and removed_at is null`)
}

/** Records on a locked store what was done about its refused deliveries. */
export function noteRefusalSteps(
  tx: Tx,
  store: StoreRow,
  steps: Partial<Pick<StoreRow, 'refused_since' | 'refused_count' | 'rejecting_sent_at'>>,
) {
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
  const first = (column: 'deliveries' | 'last_at') =>
    sql`select shop_domain from unclaimed_domains order by ${sql.ref(column)} desc, shop_domain limit ${most}`
  await sql`
    insert into unclaimed_domains (shop_domain, deliveries, first_at, last_at)
    select shop_domain, deliveries, first_at, last_at from ${unclaimed(dialectOf(tx), rows)}
    where true
    on conflict (shop_domain) do update set last_at = excluded.last_at,
      deliveries = case when unclaimed_domains.deliveries < 1000000000
        then unclaimed_domains.deliveries + excluded.deliveries else unclaimed_domains.deliveries end`.execute(
    tx,
  )
  await sql`
    delete from unclaimed_domains where last_at < ${keptSince}
      or (shop_domain not in (${first('deliveries')}) and shop_domain not in (${first('last_at')}))`.execute(
    tx,
  )
}

/** Counted domains that no merchant claims now, most deliveries first; of one domain if given. */
export function unclaimedDomains(db: Queries, domain?: string) {
  const isClaimed = sql<boolean>`exists (
    select 1 from stores
    where (stores.shop_domain = unclaimed_domains.shop_domain or stores.former_domain = unclaimed_domains.shop_domain)
      and removed_at is null)`
  let counted = db.selectFrom('unclaimed_domains').selectAll()
  if (domain !== undefined) counted = counted.where('shop_domain', '=', domain)
  return counted
    .where(({ not }) => not(isClaimed))
    .orderBy('deliveries', 'desc')
    .orderBy('shop_domain')
    .execute()
}
