import { sql } from 'kysely'
import { SettingError } from '../platform/config.ts'
import type { OpenDatabase } from '../platform/database/open-database.ts'
import type { PostgresDatabase } from '../platform/database/postgresql.ts'
import type { Schema } from '../platform/database/schema.ts'

/** What the service does with the rows of a table besides reading and adding them. Locking a row needs `update` too. */
type Change = 'update' | 'delete'

/**
 * Tables without `update` and `delete` are only ever added to. Where a trigger allows some updates only, the trigger decides: a role
 * that does not own the table cannot disable it.
 */
export const CHANGES: Record<keyof Schema, readonly Change[]> = {
  users: ['update'],
  sessions: ['update', 'delete'],
  api_keys: ['update', 'delete'],
  login_addresses: ['update', 'delete'],
  account_tokens: ['update', 'delete'],
  mails: ['update', 'delete'],
  mail_opt_outs: ['delete'],
  second_factors: ['update', 'delete'],
  recovery_codes: ['update', 'delete'],
  payout_destinations: ['update'],
  billing_accounts: ['update'],
  stores: ['update'],
  store_secrets: ['update', 'delete'],
  store_days: ['update'],
  unclaimed_domains: ['update', 'delete'],
  offers: ['update'],
  offer_status_changes: ['update'],
  applications: ['update'],
  affiliate_links: ['update'],
  link_coupons: ['update'],
  clicks: ['delete'],
  click_counts: ['update'],
  uncounted_clicks: ['delete'],
  click_days: ['update'],
  counted_visitors: ['update', 'delete'],
  billing_cycles: ['update'],
  billing_cycle_shares: ['update'],
  credits: ['update'],
  sales: ['update'],
  sale_decisions: [],
  pending_orders: ['update'],
  payouts: ['update'],
  payout_lines: [],
  ledger_entries: [],
  ledger_postings: [],
  ledger_heads: ['update'],
  ledger_seals: ['update'],
  ledger_seal_heads: [],
  inbound_events: ['update'],
  inbound_bodies: ['delete'],
  operator_deliveries: [],
  processor_attempts: ['update'],
  manual_transfers: ['update'],
  outbox_events: ['update', 'delete'],
  webhook_endpoints: ['update'],
  webhook_secrets: ['update', 'delete'],
  webhook_deliveries: ['update', 'delete'],
  flags: ['update'],
  audit_entries: ['update'],
  link_days: ['update', 'delete'],
  mailboxes: ['update'],
  schedule_runs: ['update'],
  export_jobs: ['update', 'delete'],
  processes: ['update', 'delete'],
  rate_limits: ['update', 'delete'],
  idempotency_keys: ['update', 'delete'],
  watermarks: ['update', 'delete'],
}

function privileges(): [table: string, privileges: readonly string[]][] {
  const tables = Object.entries(CHANGES).map(([table, changes]): [string, readonly string[]] => [
    table,
    ['select', 'insert', ...changes],
  ])
  return [...tables, ['mikro_orm_migrations', ['select']]]
}

/**
 * The statements that let `role` run the service and nothing more, for the owner of the tables to run, again after each migration. The
 * role can read, add and change rows as the service does; it owns nothing, so it can neither alter, truncate or drop a table nor
 * disable a trigger.
 */
export async function grantStatements({ reader }: PostgresDatabase, role: string): Promise<string[]> {
  const { rows } = await sql<{ schema: string; database: string }>`
    select quote_ident(current_schema()) as schema, quote_ident(current_database()) as database`.execute(
    reader,
  )
  const { schema, database } = rows[0] ?? { schema: 'public', database: '' }
  const to = `"${role.replaceAll('"', '""')}"`
  return [
    `grant connect on database ${database} to ${to}`,
    `revoke create on schema ${schema} from public, ${to}`,
    `grant usage on schema ${schema} to ${to}`,
    `revoke all on all tables in schema ${schema} from ${to}`,
    ...privileges().map(([table, names]) => `grant ${names.join(', ')} on ${schema}.${table} to ${to}`),
  ]
}

/** Why a role is no use for running the service with fewer rights; `null` when nothing speaks against it. */
export async function roleProblem({ reader }: PostgresDatabase, role: string): Promise<string | null> {
  const { rows } = await sql<{ super: boolean; owner: boolean }>`
    select rolsuper as super, exists (
      select from pg_class
      where relnamespace = current_schema()::regnamespace and pg_has_role(rolname, relowner, 'member')
    ) as owner
    from pg_roles where rolname = ${role}`.execute(reader)
  const [found] = rows
  if (!found) return `There is no role ${role}. Create it first: create role "${role}" login password '...'`
  if (found.super) return `Role ${role} is a superuser: privileges do not restrict it. Name another role.`
  if (found.owner) return `Role ${role} owns tables, or may act as their owner. Name another role.`
  return null
}

/** Tables that the connected role may not use as the service does; empty for the owner. */
export async function missingPrivileges({ reader }: PostgresDatabase): Promise<string[]> {
  const wanted = privileges().flatMap(([table, names]) => names.map((name) => ({ table, name })))
  const { rows } = await sql<{ subject: string }>`
    select distinct wanted.relation as subject
    from unnest(${wanted.map(({ table }) => table)}::text[], ${wanted.map(({ name }) => name)}::text[]) as wanted (relation, privilege)
    where to_regclass(wanted.relation) is not null and not has_table_privilege(wanted.relation, wanted.privilege)
    order by 1`.execute(reader)
  return rows.map(({ subject }) => subject)
}

/** Whether the connected role may migrate: it has the rights of the tables' owner, or there are no tables yet. */
export async function mayMigrate({ reader }: PostgresDatabase): Promise<boolean> {
  const { rows } = await sql<{ may: boolean }>`
    select pg_has_role(relowner, 'usage') as may from pg_class
    where oid = to_regclass('mikro_orm_migrations')`.execute(reader)
  return rows[0]?.may ?? true
}

/**
 * Throws `SettingError`, with the commands to run, when the service's PostgreSQL role may not apply the pending migrations or lacks
 * privileges on a table.
 */
export async function checkRole(database: OpenDatabase, pending: readonly string[]): Promise<void> {
  if (database.dialect !== 'postgresql') return
  const grant = '"affiliate db grants ROLE" as the owner of the tables'
  if (pending.length > 0) {
    if (await mayMigrate(database)) return
    throw new SettingError(
      'DATABASE_URL',
      `${pending.length} migrations are pending and this role may not apply them: run "affiliate db migrate" and then ${grant}`,
    )
  }
  const missing = await missingPrivileges(database)
  if (missing.length === 0) return
  throw new SettingError('DATABASE_URL', `this role may not use ${missing.join(', ')}: run ${grant}`)
}
