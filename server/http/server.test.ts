import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { migrate } from '../migrator.ts'
import { proceduresOf, routesOf } from '../platform/api/procedure.ts'
import { type OpenDatabase, openDatabase } from '../platform/database/open-database.ts'
import type { TestDialect } from '../test/testkit/databases.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { appRouter } from './router.ts'

const ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const TOKEN = 'x'.repeat(43)

interface LogLine {
  level: string
  message: string
  [field: string]: unknown
}

/** Puts a list in place of the log. */
function listen(bed: WebTestbed): LogLine[] {
  const lines: LogLine[] = []
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    const write = (facts: object, message: string) => lines.push({ ...facts, level, message })
    Object.assign(bed.platform.log, { [level]: write })
  }
  return lines
}

/** A file that is no database, and an address where no server listens. */
async function openBrokenDatabase(dialect: TestDialect, folder: string): Promise<OpenDatabase> {
  if (dialect === 'postgresql') return openDatabase('postgres://unknown@127.0.0.1:1/none', { create: false })
  const file = join(folder, 'broken.db')
  writeFileSync(file, 'this is no database '.repeat(500))
  return openDatabase(`sqlite:${file}`, { create: false })
}

interface World {
  bed: WebTestbed
  lines: LogLine[]
  /** Of a merchant. */
  token: string
}

async function open(world: World, dialect: TestDialect): Promise<void> {
  world.bed = await openWebTestbed(dialect)
  world.lines = listen(world.bed)
}

for (const dialect of proofDialects()) {
  const it = suite<World>(`the server on ${dialect}`)
  it.before((world) => open(world, dialect))
  it.after(({ bed }) => bed.close())

  it('tells that it lives and is ready', async ({ bed }) => {
    const health = await bed.ask('GET', '/healthz')
    assert.is(health.status, 200)
    assert.match(health.headers.get('x-request-id') ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    const ready = await bed.ask('GET', '/readyz')
    assert.equal([ready.status, ready.body], [200, { status: 'ready', environment: 'development' }])
    assert.is((await bed.ask('GET', '/healthz', { token: TOKEN })).status, 200, 'needs no valid token')
  })

  it('answers 503 with Retry-After on every route when the database is down', async ({ bed, lines }) => {
    const listed = proceduresOf(appRouter).flatMap(routesOf)
    assert.ok(listed.length > 20)
    const { database } = bed.testDatabase
    const broken = await openBrokenDatabase(dialect, bed.testDatabase.folder)
    Object.assign(bed.platform, { database: broken })
    Object.assign(bed.testDatabase, { database: broken })
    for (const { method, path } of [
      ...listed,
      { method: 'GET', path: '/readyz' },
      { method: 'GET', path: '/go/someslug' },
    ]) {
      const url = path.replace(/:\w+/g, ID)
      const body = method === 'GET' ? undefined : {}
      const answer = await bed.ask(method, url, { token: TOKEN, body })
      assert.is(answer.status, 503, `${method} ${path}: ${JSON.stringify(answer.body)}`)
      assert.is(answer.body.code, 'unavailable')
      assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    assert.is((await bed.ask('GET', '/healthz')).status, 200)
    assert.not.ok(lines.some((line) => line.message === 'bug'))
    Object.assign(bed.platform, { database })
    Object.assign(bed.testDatabase, { database })
    await broken.close()
    assert.is((await bed.ask('GET', '/offers')).status, 200, 'and works on when it is back')
  })

  it('can be migrated while it runs', async ({ bed }) => {
    assert.equal(await migrate(bed.testDatabase.database), [])
  })

  it('is not ready before the database is migrated', async ({ bed }) => {
    const { database } = bed.testDatabase
    const [last] = await database.writer
      .selectFrom('mikro_orm_migrations' as never)
      .select('name' as never)
      .orderBy('name' as never, 'desc')
      .limit(1)
      .execute()
    await database.writer
      .deleteFrom('mikro_orm_migrations' as never)
      .where('name' as never, '=', (last as { name: string }).name as never)
      .execute()
    const answer = await bed.ask('GET', '/readyz')
    assert.is(answer.status, 503)
    assert.is(answer.body.code, 'unavailable')
    assert.ok(Number(answer.headers.get('retry-after')) > 0)
  })

  it.run()
}

// Not the database's matter.
const it = suite<World>('the server')
it.before(async (world) => {
  await open(world, 'sqlite')
  const body = { email: 'm@example.pk', password: 'six wet camels', role: 'merchant', display_name: 'M' }
  world.token = String((await world.bed.ask('POST', '/auth/register', { body })).body.token)
})
it.before.each(({ lines }) => {
  lines.length = 0
})
it.after(({ bed }) => bed.close())

it('has no security.txt without a contact, and lets no page of another origin in', async ({ bed }) => {
  const { status, body } = await bed.ask('GET', '/.well-known/security.txt')
  assert.equal([status, body.code], [404, 'not_found'])
  const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'PATCH' }
  const answer = await bed.ask('GET', '/offers', { headers })
  assert.equal([answer.status, answer.headers.get('access-control-allow-origin')], [200, null])
  assert.is((await bed.ask('OPTIONS', '/offers', { headers })).status, 405)
})

it('logs each request without what was sent in it', async ({ bed, lines }) => {
  const secrets = { email: 'someone@example.pk', password: 'a long passphrase' }
  const answer = await bed.ask('POST', '/auth/login', { body: secrets, headers: { cookie: 'a=secret' } })
  assert.is(answer.status, 401)
  await bed.ask('GET', `/offers?q=private-search`)
  await bed.ask('GET', `/no/such/path-private`)
  const logged = JSON.stringify(lines)
  for (const secret of ['someone', 'passphrase', 'secret', 'private']) assert.not.ok(logged.includes(secret))
  const line = lines.find((one) => one.requestId === answer.headers.get('x-request-id'))
  assert.ok(line)
  const { requestId, ms, ...facts } = line
  assert.is(requestId, answer.body.request_id)
  assert.type(ms, 'number')
  const route = '/auth/login'
  assert.equal(facts, { level: 'info', message: 'request', method: 'POST', route, status: 401 })
})

it('logs a bug whole, once, and shows nothing of it', async ({ bed, lines }) => {
  const { ids } = bed.platform
  const next = ids.next
  let calls = 0
  // The first id is the request's own; the next is asked for inside the procedure.
  Object.assign(bed.platform, {
    ids: { next: () => (calls++ === 0 ? next() : assert.unreachable('an inner secret')) },
  })
  const answer = await bed.ask('POST', '/auth/register', {
    body: { email: 'a@example.pk', password: 'a long passphrase', role: 'creator', display_name: 'A' },
  })
  Object.assign(bed.platform, { ids })
  assert.is(answer.status, 500)
  assert.is(answer.body.code, 'internal')
  assert.not.match(JSON.stringify(answer.body), /inner secret|stack/)
  const bugs = lines.filter((line) => line.message === 'bug')
  assert.is(bugs.length, 1)
  assert.is(bugs[0]?.requestId, answer.body.request_id)
  assert.match(String(bugs[0]?.err), /an inner secret/)
})

it('knows which methods a path takes', async ({ bed }) => {
  const answer = await bed.ask('PUT', '/me', { body: {} })
  assert.is(answer.status, 405)
  assert.is(answer.headers.get('allow'), 'GET, HEAD, PATCH')
  assert.is((await bed.ask('PUT', `/offers/${ID}/status`)).headers.get('allow'), 'PATCH')
  assert.is((await bed.ask('DELETE', '/go/x')).headers.get('allow'), 'GET, HEAD')
  assert.is((await bed.ask('GET', '/webhooks/processor')).headers.get('allow'), 'POST')
})

it('finds nothing at a path that leaves out its id', async ({ bed }) => {
  const paths = ['/offers/', '/offers/?limit=1', '/offers//applications', '/affiliate-links/', '/go/']
  for (const path of [...paths, '/sales/', '/jobs/', '/jobs//file', '/trpc/', '/me/']) {
    const answer = await bed.ask('GET', path)
    assert.is(answer.status, 404, path)
    assert.equal([answer.body.code, answer.body.status], ['not_found', 404], path)
    assert.is(answer.headers.get('content-type'), 'application/problem+json', path)
    assert.is(answer.headers.get('x-request-id'), answer.body.request_id, path)
  }
  for (const [method, path] of [
    ['PATCH', '/offers/'],
    ['PATCH', '/offers//status'],
    ['DELETE', '/stores/'],
    ['POST', '/admin/users//suspend'],
  ] as const) {
    assert.is((await bed.ask(method, path, { body: {} })).status, 404, `${method} ${path}`)
  }
})

it('ignores unknown query parameters and stale tokens on public routes', async ({ bed, token }) => {
  const noise = '?fbclid=IwAR0&utm_source=reels&utm_source=again&mc_cid=1&ref=x'
  assert.is((await bed.ask('GET', `/offers${noise}&limit=1`)).status, 200)
  const shared = `${noise}&id=1`
  assert.is((await bed.ask('GET', `/offers/${ID}${shared}`)).status, 404)
  assert.is((await bed.ask('GET', `/affiliate-links/abcdefgh${shared}`)).status, 404)
  assert.is((await bed.ask('GET', '/offers', { token: TOKEN })).status, 200)
  assert.is((await bed.ask('GET', `/offers/${ID}`, { token: TOKEN })).status, 404)
  assert.is((await bed.ask('GET', '/affiliate-links/abcdefgh', { token: TOKEN })).status, 404)
  const own = await bed.ask('GET', '/offers?mine=true', { token: TOKEN })
  assert.equal([own.status, own.body.code], [401, 'unauthenticated'])
  // Other routes still refuse an unknown parameter.
  const { status } = await bed.ask('GET', '/summary?fbclid=1', { token })
  assert.is(status, 400)
})

it('says how to write a query right', async ({ bed, token }) => {
  const detailOf = async (path: string) => {
    const { status, body } = await bed.ask('GET', path, { token })
    assert.is(status, 400, path)
    return body.detail as string
  }
  assert.match(
    await detailOf('/offers?search=x'),
    /^search is not a known parameter; known are category, niche, .*q, /,
  )
  assert.match(await detailOf('/sales?offer=x'), /known are acceptance_status, .*offer_id, .*from, to/)
  assert.match(await detailOf('/offers/123'), /^id must be an id such as [0-9a-f]{8}-[0-9a-f-]{27}\.$/)
  const period = 'from=2026-11-20T00:00:00Z&to=2026-11-01T00:00:00%2B05:00'
  assert.is(await detailOf(`/sales?${period}`), 'from is later than to.')
  assert.match(await detailOf(`/summary?${period}`), /^(There is no such period|from )/)
  for (const path of ['/sales?limit=1&limit=2', '/offers?q=a&q=b', '/offers?mine=true&mine=true']) {
    assert.match(await detailOf(path), /^(limit|q|mine) is given twice\.$/)
  }
})

it('reports every missing, mistyped or unknown field at once, in plain English', async ({ bed, token }) => {
  const body = { title: 5, commission_rate: 91, product_ids: [], attribution_window_days: 1.5, owner: 'me' }
  const answer = await bed.ask('POST', '/offers?x=1', { token, body })
  assert.is(answer.status, 400)
  const issues = answer.body.issues as { path: string; message: string }[]
  const byPath = issues.map(({ path, message }) => `${path} ${message}`).sort()
  assert.equal(byPath, [
    'attribution_window_days must be a whole number',
    'category is required',
    'commission_rate must be between 0.01 and 90',
    'niche is required',
    'owner is not a known field',
    'product_ids must have at least 1 entry',
    'product_url is required',
    'title must be text',
    'x is not a known parameter',
  ])
  assert.is(answer.body.detail, 'attribution_window_days must be a whole number, and 8 more problems.')
  const credentials = await bed.ask('POST', '/auth/register', {
    body: { role: 'admin', password: 'a'.repeat(300) },
  })
  assert.equal(
    (credentials.body.issues as { path: string; message: string }[]).map(
      ({ path, message }) => `${path} ${message}`,
    ),
    [
      'display_name is required',
      'email is required',
      'password must have at most 256 characters',
      'role must be one of merchant, creator',
    ],
  )
})

it('names the body as a whole by an empty path', async ({ bed }) => {
  const { status, body } = await bed.ask('POST', '/auth/login', { body: ['no object'] })
  assert.equal([status, body.issues], [400, [{ path: '', message: 'The body must be a JSON object.' }]])
})

it('serves its own description', async ({ bed }) => {
  const { body } = await bed.ask('GET', '/openapi.json')
  assert.is(body.openapi, '3.1.0')
  assert.equal(body.servers, [{ url: bed.platform.publicBaseUrl }])
})

it.run()
