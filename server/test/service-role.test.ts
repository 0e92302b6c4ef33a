import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runHere } from '../../cli/test/run-here.ts'
import { openPostgres } from '../platform/database/postgresql.ts'
import { startService } from '../service.ts'
import { openTestDatabase, type TestDatabase, testDialects } from './testkit/databases.ts'
import { populate } from './testkit/one-of-each.ts'
import { addServiceRole, SERVICE_ROLE } from './testkit/service-role.ts'

/** What only the owner of a table, a superuser or a role with another privilege may do. */
const REFUSED = [
  'alter table ledger_entries disable trigger all',
  'alter table sales disable trigger user',
  'drop trigger ledger_entries_append_only on ledger_entries',
  'create trigger another before insert on sales execute function refuse_change()',
  'alter table ledger_postings add column note text',
  'alter table ledger_entries owner to current_user',
  'drop table audit_entries',
  'truncate ledger_entries cascade',
  'truncate clicks',
  "create or replace function refuse_change() returns trigger language plpgsql as 'begin return new; end'",
  'drop function refuse_change() cascade',
  'set session_replication_role = replica',
  'create table mine (id int)',
  'create schema mine',
  "update ledger_entries set kind = 'credit_granted'",
  'update ledger_postings set amount = 0',
  'delete from ledger_postings',
  'delete from audit_entries',
  'delete from sales',
  'delete from payouts',
  'update clicks set tracked = 0',
  "insert into mikro_orm_migrations (name) values ('another')",
]

/** Granted, since the service does it to other columns or in other states, and refused by a trigger. */
const REFUSED_BY_TRIGGER = [
  'update sales set commission = 1',
  'update payout_destinations set account_title = iban_last4',
  "update billing_accounts set kind = 'raast_id'",
  "update payouts set state = 'pending'",
  'update ledger_heads set sequence = 1',
  'update credits set amount = 1',
  'update ledger_seals set sealed_at = 1',
  "update audit_entries set actor = 'another'",
]

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'ok',
    (error: { code?: string }) => error.code,
  )

if (testDialects().includes('postgresql')) {
  const it = suite<{ owned: TestDatabase; roleUrl: string }>('a role that owns nothing')

  // The first test needs a role without privileges, the last one fills the tables.
  it.before(async (world) => {
    world.owned = await openTestDatabase('postgresql')
    world.roleUrl = await addServiceRole(world.owned.url)
  })
  it.after(({ owned }) => owned.close())

  const grant = (url: string, ...args: string[]) => runHere(['db', 'grants', ...args], { DATABASE_URL: url })

  it('prints statements that grant the same', async ({ owned }) => {
    const privileges = async () => {
      const { rows } = await sql`select table_name, privilege_type from information_schema.role_table_grants
        where grantee = ${SERVICE_ROLE} order by 1, 2`.execute(owned.database.writer)
      return rows
    }
    const printed = await grant(owned.url, SERVICE_ROLE, '--dry-run')
    assert.is(printed.code, 0, printed.stderr)
    assert.equal(await privileges(), [])
    await sql.raw(printed.stdout).execute(owned.database.writer)
    const byHand = await privileges()
    assert.ok(byHand.length > 60)
    await grant(owned.url, SERVICE_ROLE)
    assert.equal(await privileges(), byHand)
    const example = await grant(owned.url)
    assert.match(example.stdout, /^create role affiliate_service login password '\.\.\.';\n/)
    assert.match(example.stdout, /\ngrant select, insert on public\.ledger_entries to "affiliate_service";\n/)
  })

  /** What a start by the role says; `undefined` when it succeeds. */
  const start = ({ owned, roleUrl }: { owned: TestDatabase; roleUrl: string }) =>
    startService({
      environment: { PORT: '0', DATABASE_URL: roleUrl, DATA_DIR: owned.folder, LOG_LEVEL: 'silent' },
    }).then(
      (service) => service.stop(),
      (error: Error) => error.message,
    )

  it('names the command to run where it lacks privileges', async (world) => {
    const { owned } = world
    await grant(owned.url, SERVICE_ROLE)
    await sql`revoke update on offers from ${sql.id(SERVICE_ROLE)}`.execute(owned.database.writer)
    const lacking = /^setting DATABASE_URL: this role may not use offers: .*db grants/
    assert.match(String(await start(world)), lacking)
    await grant(owned.url, SERVICE_ROLE)
    assert.is(await start(world), undefined)
  })

  it('must not be a superuser, the owner, or unknown', async ({ owned }) => {
    const superuser = new URL(owned.url).username
    const assertRefused = async (role: string, says: RegExp) => {
      const ended = await grant(owned.url, role)
      assert.is(ended.code, 1)
      assert.match(ended.stderr, says)
    }
    await assertRefused(superuser, /is a superuser/)
    await assertRefused('nobody_of_that_name', /no role .*create role/)
    await sql`grant ${sql.id(superuser)} to ${sql.id(SERVICE_ROLE)}`.execute(owned.database.writer)
    try {
      await assertRefused(SERVICE_ROLE, /may act as their owner/)
    } finally {
      await sql`revoke ${sql.id(superuser)} from ${sql.id(SERVICE_ROLE)}`.execute(owned.database.writer)
    }
  })

  it('may not migrate, and the error names the role that may', async (world) => {
    const { writer } = world.owned.database
    await sql`create table kept as select * from mikro_orm_migrations`.execute(writer)
    await sql`delete from mikro_orm_migrations`.execute(writer)
    assert.match(String(await start(world)), /^setting DATABASE_URL: \d+ migrations .*db migrate.*db grants/)
    await sql`insert into mikro_orm_migrations select * from kept`.execute(writer)
    await sql`drop table kept`.execute(writer)
  })

  it('can do what the service does and nothing else after "db grants"', async ({ owned, roleUrl }) => {
    await populate(owned.database)
    const granted = await grant(owned.url, SERVICE_ROLE)
    assert.is(granted.code, 0, granted.stderr)
    const database = openPostgres(roleUrl, { poolSize: 1 })
    try {
      for (const [wanted, statements] of Object.entries({ 42501: REFUSED, P0001: REFUSED_BY_TRIGGER }))
        for (const statement of statements)
          assert.is(await codeOf(sql.raw(statement).execute(database.writer)), wanted, statement)
    } finally {
      await database.close()
    }
  })

  it.run()
}

const onSqlite = suite('db grants on sqlite')
onSqlite('says that files are protected in another way', async () => {
  const database = await openTestDatabase('sqlite')
  const ended = await runHere(['db', 'grants'], { DATABASE_URL: database.url })
  await database.close()
  assert.equal([ended.code, ended.stdout], [1, ''])
  assert.match(ended.stderr, /SQLite has no roles/)
})
onSqlite.run()
