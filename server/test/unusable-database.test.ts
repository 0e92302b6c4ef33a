// proof only
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Finding } from '../../cli/doctor/finding.ts'
import { APP_KEY } from '../../cli/test/run-affiliate.ts'
import { runHere } from '../../cli/test/run-here.ts'
import { unprivilegedAccount } from '../../scripts/testing/postgres-binaries.ts'
import { withDatabaseName } from '../platform/database/postgres-address.ts'
import { clientOf } from '../platform/database/postgres-hosts.ts'
import { selfSigned } from './storefront/self-signed.ts'
import { onPostgres } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { call, registerMerchant, startQuietly } from './testkit/service-bed.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from './testkit/standby.ts'

interface Context {
  cluster: PostgresCluster
  node: PostgresNode
  folder: string
}

/** A PostgreSQL server that no longer lets the service in, or does not store what it writes. */
const it = suite<Context>('a PostgreSQL that cannot be used')

it.before.each(async (context) => {
  context.cluster = await startCluster()
  context.node = context.cluster.primary
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-unusable-'))
  chmodSync(context.folder, 0o755)
})

it.after.each(async ({ cluster, folder }) => {
  await cluster.close()
  rmSync(folder, { recursive: true })
})

const OFFER = '/offers/019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

/** Starts the service, ends it after `work`. */
async function withService(
  settings: Record<string, string>,
  work: (url: string, environment: Record<string, string>) => Promise<void>,
) {
  const environment = { APP_KEY, ...settings }
  const { service, url } = await startQuietly(environment)
  try {
    await work(url, { ...environment, PUBLIC_BASE_URL: url })
  } finally {
    await service.stop()
  }
}

const readiness = async (url: string) => {
  const { status, body } = await call(url, 'GET', '/readyz')
  return `${status} ${body.detail ?? body.status}`
}
const untilReadiness = (url: string, wanted: RegExp) =>
  eventually(
    () => readiness(url),
    (text) => wanted.test(text),
  )
/** The doctor's findings, each as one text. */
const doctor = async (environment: Record<string, string>) => {
  const { stdout } = await runHere(['doctor', '--json'], environment)
  const { checks } = JSON.parse(stdout) as { checks: Finding[] }
  return checks.map(({ name, state, detail, mend }) => `${name} ${state}: ${detail} → ${mend}`).join('\n')
}
/** Ends all connections but its own, so that the next ones meet what changed. */
const END_CONNECTIONS = `select pg_terminate_backend(pid) from pg_stat_activity
  where backend_type = 'client backend' and pid <> pg_backend_pid()`

/** Runs a statement on a connection of its own to this address. */
async function queryAt(address: string, statement: string) {
  const client = clientOf(address)
  await client.connect()
  await client.query(statement)
  await client.end()
}

/** What the server shows its clients from now on. */
async function useCertificate({ node, folder }: Context, { key, cert }: ReturnType<typeof selfSigned>) {
  const account = unprivilegedAccount()
  const put = (name: string, text: string) => {
    const file = join(folder, name)
    writeFileSync(file, text, { mode: 0o600 })
    if (account) chownSync(file, account.uid, account.gid)
    return file
  }
  const files = { ssl_cert_file: put('server.crt', cert), ssl_key_file: put('server.key', key) }
  await node.configure({ ssl: 'on', ...files })
  await node.query(END_CONNECTIONS)
}

async function useRules(node: PostgresNode, ...lines: string[]) {
  const [{ hba_file }] = await node.query('show hba_file')
  const rows = lines.map((line) => `('${line}')`).join(', ')
  await node.query(`copy (values ${rows}) to '${hba_file}'`)
  await node.query('select pg_reload_conf()')
}

it('is unavailable while its certificate does not verify, and is used again with the former one', async (context) => {
  const { node, folder } = context
  const own = selfSigned('localhost')
  writeFileSync(join(folder, 'ca.crt'), own.cert)
  await useCertificate(context, own)
  const DATABASE_URL = `postgres://postgres@localhost:${node.port}/postgres?sslmode=verify-full&sslrootcert=${folder}/ca.crt`
  await withService({ DATABASE_URL, DATA_DIR: folder }, async (url, environment) => {
    assert.is(await readiness(url), '200 ready')
    const encrypted = await node.query(`select count(*)::int as n from pg_stat_ssl where ssl`)
    assert.ok(encrypted[0].n > 0)
    await useCertificate(context, selfSigned('localhost'))
    await untilReadiness(url, /^503 The database server's certificate cannot be verified\.$/)
    assert.is((await call(url, 'GET', OFFER)).status, 503)
    const found =
      /^database fail: .*certificate cannot be verified\. \(.*→ Name the .* authority .*sslrootcert/m
    assert.match(await doctor(environment), found)
    await useCertificate(context, selfSigned('elsewhere'))
    await useCertificate(context, own)
    await untilReadiness(url, /^200 ready$/)
    assert.is((await call(url, 'GET', OFFER)).status, 404)
  })
})

it('says that TLS must be on where the server refuses plain connections, and that a password is wrong', async (context) => {
  const { node, folder } = context
  await useCertificate(context, selfSigned('localhost'))
  const plain = `postgres://postgres@localhost:${node.port}/postgres`
  await withService({ DATABASE_URL: plain, DATA_DIR: folder }, async (url, environment) => {
    await useRules(node, 'hostssl all postgres all trust', 'hostssl all all all scram-sha-256')
    const run = (address: string, ...args: string[]) =>
      runHere(args, { ...environment, DATABASE_URL: address })
    await queryAt(`${plain}?sslmode=no-verify`, END_CONNECTIONS)
    await untilReadiness(url, /^503 The database server refuses unencrypted connections\.$/)
    assert.is((await call(url, 'GET', OFFER)).status, 503)
    const refused = await run(plain, 'users', 'list')
    assert.match(refused.stderr, /refuses unencrypted connections\. Turn TLS on: add sslmode=require/)
    assert.match(await doctor(environment), /^database fail: .*→ Turn TLS on: add sslmode=require/m)
    const sent = plain.replace('postgres@', 'shop:se%40cret@')
    const wrong = await run(`${sent}?sslmode=no-verify`, 'users', 'list')
    assert.match(wrong.stderr, /refuses the user or password\. Correct user and password in DATABASE_URL/)
    assert.not.match(wrong.stderr, /se(%40|@)?cret/)
    const none = await run(`${plain.replace('postgres@', 'shop@')}?sslmode=no-verify`, 'users', 'list')
    assert.match(none.stderr, /refuses the user or password/)
    const noTls = await startCluster()
    try {
      const asked = await run(`${noTls.primary.url}?sslmode=require`, 'users', 'list')
      assert.match(asked.stderr, /does not offer TLS, which DATABASE_URL asks for/)
    } finally {
      await noTls.close()
    }
  })
})

it('says that writes fail while commits wait for a lost standby', async ({ node, folder }) => {
  await withService({ DATABASE_URL: node.url, DATA_DIR: folder }, async (url, environment) => {
    await node.configure({ synchronous_standby_names: 'lost' })
    await untilReadiness(url, /^503 Writes to the database fail\. The database does not finish/)
    const found = await doctor(environment)
    assert.match(
      found,
      /^database fail: \d+ commits wait for a synchronous standby \(lost\)\..*→ Bring the standby back/m,
    )
    assert.match(found, /^service fail: .*\/readyz answers 503: Writes to the database fail/m)
    const status = await runHere(['status'], environment)
    assert.match(status.stdout + status.stderr, /commits wait for a synchronous standby \(lost\)/)
    await node.configure({ synchronous_standby_names: '' })
    await untilReadiness(url, /^200 ready$/)
  })
})

it('is refused at the start with the name of a setting that rules it out', async ({ node, folder }) => {
  const start = (database: string) =>
    withService(
      { DATABASE_URL: withDatabaseName(node.url, database), DATA_DIR: folder },
      async () => {},
    ).then(
      () => 'started',
      (error: Error) => error.message,
    )
  for (const encoding of ['SQL_ASCII', 'LATIN1']) {
    const name = encoding.toLowerCase()
    await node.query(
      `create database ${name} encoding '${encoding}' template template0 locale_provider libc locale 'C'`,
    )
    assert.match(await start(name), `setting DATABASE_URL: server_encoding is ${encoding}; it must be UTF8`)
  }
  await node.query('create database shop')
  for (const [setting, value, needs] of [
    ['default_transaction_isolation', 'serializable', 'it must be read committed'],
    ['default_transaction_isolation', 'repeatable read', 'it must be read committed'],
    ['statement_timeout', '5s', 'it must be 0, or at least 60s'],
    ['idle_in_transaction_session_timeout', '1s', 'it must be 0, or at least 60s'],
    ['lock_timeout', '10ms', 'it must be 0, or at least 1s'],
    ['session_replication_role', 'replica', 'it must be origin'],
    ['standard_conforming_strings', 'off', 'it must be on'],
  ] as const) {
    await node.query(`alter database shop set ${setting} = '${value}'`)
    assert.match(await start('shop'), `${setting} of the database is ${value}; ${needs}`)
    await node.query(`alter database shop reset ${setting}`)
  }
  await node.query('alter database shop set default_transaction_read_only = on')
  assert.match(await start('shop'), 'default_transaction_read_only is on')
  await node.query('alter database shop reset default_transaction_read_only')
  await node.query(`alter database shop set search_path = 'none'`)
  assert.match(await start('shop'), 'search_path names no schema that exists')
})

it('works with a schema, a time zone and long timeouts of its own', async ({ node, folder }) => {
  await node.query('create database shop')
  const shop = withDatabaseName(node.url, 'shop')
  for (const [setting, value] of Object.entries({
    timezone: 'Asia/Karachi',
    datestyle: 'SQL, DMY',
    intervalstyle: 'iso_8601',
    bytea_output: 'escape',
    statement_timeout: '2min',
    lock_timeout: '30s',
    idle_in_transaction_session_timeout: '5min',
    idle_session_timeout: '10min',
  })) {
    await node.query(`alter database shop set ${setting} = '${value}'`)
  }
  await queryAt(shop, 'create schema market')
  const DATABASE_URL = `${shop}?options=-c%20search_path%3Dmarket`
  await withService({ DATABASE_URL, DATA_DIR: folder }, async (url, environment) => {
    const token = await registerMerchant(url)
    await call(url, 'PATCH', '/me', { token, body: { display_name: 'لان' } })
    assert.is(await readiness(url), '200 ready')
    const listed = await runHere(['users', 'list', '--json'], environment)
    assert.match(listed.stdout, 'لان')
    const verified = await runHere(['ledger', 'verify'], environment)
    assert.is(verified.code, 0, verified.stderr)
  })
})

onPostgres(it).run()
