import type { Ddl } from './ddl.ts'

/** Exports of pending orders and of an invoice's sales, the search for a pending order by name, and former names of shops. */
export const up = ({ id }: Ddl): string[] => [
  'alter table "export_jobs" drop constraint "export_jobs_resource_check"',
  `alter table "export_jobs" add constraint "export_jobs_resource_check"
    check (resource in ('sales', 'payouts', 'clicks', 'billing_cycles', 'applications', 'pending_orders'))`,
  `alter table "export_jobs" add column "billing_cycle_id" ${id}`,
  'create index "pending_orders_order_name" on "pending_orders" ("store_id", "order_name")',
  'alter table "stores" add column "former_domain" text',
  'create index "stores_former_domain" on "stores" ("former_domain") where former_domain is not null',
]
