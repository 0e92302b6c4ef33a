import type { Ddl } from './ddl.ts'

/** What an approval locks and what never changes, except that the link ends once. */
const LOCKED = [
  'id',
  'slug',
  'application_id',
  'offer_id',
  'merchant_id',
  'creator_id',
  'commission_rate',
  'offer_rate',
  'attribution_window_days',
  'product_ids',
  'created_at',
]

/** Links that end, individual rates, withdrawn applications, credits that answer a request, and indexes of the sale and link lists. */
export const up = ({ id, refuse, onlyAdded, onSqlite, onPostgres }: Ddl): string[] => {
  const differ = (columns: string[]) => columns.map((name) => `new.${name} is distinct from old.${name}`)
  const dropped = (table: string, ...triggers: string[]) =>
    triggers.map((name) => `drop trigger "${table}_${name}"${onPostgres(` on "${table}"`)}`)
  return [
    'alter table "affiliate_links" add column "offer_rate" integer',
    'alter table "affiliate_links" add column "ended_at" bigint',
    'alter table "affiliate_links" add column "end_reason" text',
    'create index "affiliate_links_merchant" on "affiliate_links" ("merchant_id", "id")',
    ...dropped('affiliate_links', 'refuse_update').map(onSqlite),
    ...dropped('affiliate_links', 'append_only').map(onPostgres),
    onPostgres(refuse('delete', 'affiliate_links', 'affiliate_links_refuse_delete')),
    refuse(
      'update',
      'affiliate_links',
      'affiliate_links_end_once',
      `${differ(LOCKED).join(' or ')} or (new.ended_at is null and new.end_reason is not null)
        or (old.ended_at is not null and (${differ(['ended_at', 'end_reason']).join(' or ')}))`,
    ),

    'alter table "applications" drop constraint "applications_status_check"',
    `alter table "applications" add constraint "applications_status_check"
      check (status in ('pending', 'approved', 'rejected', 'withdrawn'))`,

    `alter table "credits" add column "request_id" ${id}`,
    'create unique index "credits_request" on "credits" ("request_id") where request_id is not null',
    ...dropped('credits', 'refuse_update', 'refuse_delete').map(onSqlite),
    ...dropped('credits', 'append_only', 'no_truncate').map(onPostgres),
    ...onlyAdded('credits', [
      'id',
      'merchant_id',
      'amount',
      'reference',
      'reason',
      'request_id',
      'created_at',
    ]),

    'create index "sales_order_name" on "sales" ("store_id", "order_name")',
    'drop index "sales_cycle"',
    'create index "sales_cycle" on "sales" ("billing_cycle_id", "id")',
    onSqlite(
      'create index "sales_cycle_shares" on "sales" ("billing_cycle_id", "creator_id", "commission", "platform_fee")',
    ),
  ]
}
