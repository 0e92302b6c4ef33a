import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { proceduresOf, routesOf } from '../platform/api/procedure.ts'
import { type OpenDatabase, openDatabase } from '../platform/database/open-database.ts'
import type { TestDialect } from '../test/testkit/databases.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import type { Answer } from '../test/testkit/service-bed.ts'
import { type LogLine, linesOf, webSuite } from '../test/testkit/web.ts'
import { isRefused, register } from '../test/testkit/web-people.ts'
import { appRouter } from './router.ts'

const ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const TOKEN = 'x'.repeat(43)

/** A file that is no database, and an address where no server listens. */
async function openBrokenDatabase(dialect: TestDialect, folder: string): Promise<OpenDatabase> {
  if (dialect === 'postgresql') return openDatabase('postgres://unknown@127.0.0.1:1/none', { create: false })
  const file = join(folder, 'broken.db')
  writeFileSync(file, 'this is no database '.repeat(500))
  return openDatabase(`sqlite:${file}`, { create: false })
}

interface World {
  lines: LogLine[]
  /** Of a merchant. */
  token: string
}

for (const dialect of proofDialects()) {
  const it = webSuite<World>(`the server on ${dialect}`, dialect)
  it.before((world) => {
    world.lines = linesOf(world.bed.platform)
  })

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
    const edges = ['/readyz', '/go/someslug'].map((path) => ({ method: 'GET', path }))
    for (const { method, path } of [...listed, ...edges]) {
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

  it('is not ready before the database is migrated', async ({ bed }) => {
    const { writer } = bed.testDatabase.database
    await sql`delete from mikro_orm_migrations where name = (select max(name) from mikro_orm_migrations)`.execute(
      writer,
    )
    const answer = await bed.ask('GET', '/readyz')
    isRefused(answer, 503, 'unavailable')
    assert.ok(Number(answer.headers.get('retry-after')) > 0)
  })

  it.run()
}

// Not the database's matter.
const it = webSuite<World>('the server')
it.before(async (world) => {
  world.lines = linesOf(world.bed.platform)
  world.token = (await register(world.bed, 'merchant')).token
})
it.before.each(({ lines }) => {
  lines.length = 0
})

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
  isRefused(answer, 500, 'internal')
  assert.not.match(JSON.stringify(answer.body), /inner secret|stack/)
  const bugs = lines.filter((line) => line.message === 'bug')
  assert.equal([bugs.length, bugs[0]?.requestId], [1, answer.body.request_id])
  assert.match(String(bugs[0]?.err), /an inner secret/)
})

it('knows which methods a path takes', async ({ bed }) => {
  for (const [method, path, allowed] of [
    ['PUT', '/me', 'GET, HEAD, PATCH'],
    ['PUT', `/offers/${ID}/status`, 'PATCH'],
    ['DELETE', '/go/x', 'GET, HEAD'],
    ['GET', '/webhooks/processor', 'POST'],
  ] as const) {
    const { status, headers } = await bed.ask(method, path)
    assert.equal([status, headers.get('allow')], [405, allowed], path)
  }
})

it('finds nothing at a path that leaves out its id', async ({ bed }) => {
  const read =
    '/offers/ /offers/?limit=1 /offers//applications /affiliate-links/ /go/ /sales/ /jobs/ /jobs//file'
  const written = ['PATCH /offers/', 'PATCH /offers//status', 'DELETE /stores/', 'POST /admin/users//suspend']
  const paths = [...read.split(' '), '/trpc/', '/me/'].map((path) => `GET ${path}`)
  for (const call of [...paths, ...written]) {
    const [method = '', path = ''] = call.split(' ')
    const answer = await bed.ask(method, path, method === 'GET' ? {} : { body: {} })
    assert.equal([answer.status, answer.body.code, answer.body.status], [404, 'not_found', 404], call)
    assert.is(answer.headers.get('content-type'), 'application/problem+json', call)
    assert.is(answer.headers.get('x-request-id'), answer.body.request_id, call)
  }
})

it('ignores unknown query parameters and stale tokens on public routes', async ({ bed, token }) => {
  const noise = '?fbclid=IwAR0&utm_source=reels&utm_source=again&mc_cid=1&ref=x'
  for (const [path, more, status] of [
    ['/offers', '&limit=1', 200],
    [`/offers/${ID}`, '&id=1', 404],
    ['/affiliate-links/abcdefgh', '&id=1', 404],
  ] as const) {
    assert.is((await bed.ask('GET', `${path}${noise}${more}`)).status, status, path)
    assert.is((await bed.ask('GET', path, { token: TOKEN })).status, status, path)
  }
  isRefused(await bed.ask('GET', '/offers?mine=true', { token: TOKEN }), 401, 'unauthenticated')
  assert.is((await bed.ask('GET', '/summary?fbclid=1', { token })).status, 400, 'on no other route')
})

it('says how to write a query right', async ({ bed, token }) => {
  const period = 'from=2026-11-20T00:00:00Z&to=2026-11-01T00:00:00%2B05:00'
  for (const [path, detail] of [
    ['/offers?search=x', /^search is not a known parameter; known are category, niche, .*q, /],
    ['/sales?offer=x', /known are acceptance_status, .*offer_id, .*from, to/],
    ['/offers/123', /^id must be an id such as [0-9a-f]{8}-[0-9a-f-]{27}\.$/],
    [`/sales?${period}`, /^from is later than to\.$/],
    [`/summary?${period}`, /^(There is no such period|from )/],
    ['/sales?limit=1&limit=2', /^limit is given twice\.$/],
    ['/offers?q=a&q=b', /^q is given twice\.$/],
    ['/offers?mine=true&mine=true', /^mine is given twice\.$/],
  ] as const) {
    const { status, body } = await bed.ask('GET', path, { token })
    assert.is(status, 400, path)
    assert.match(String(body.detail), detail, path)
  }
})

it('reports every missing, mistyped or unknown field at once, in plain English', async ({ bed, token }) => {
  const body = { title: 5, commission_rate: 91, product_ids: [], attribution_window_days: 1.5, owner: 'me' }
  const answer = await bed.ask('POST', '/offers?x=1', { token, body })
  assert.equal(issuesIn(answer), [
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
  const credentials = { role: 'admin', password: 'a'.repeat(300) }
  assert.equal(issuesIn(await bed.ask('POST', '/auth/register', { body: credentials })), [
    'display_name is required',
    'email is required',
    'password must have at most 256 characters',
    'role must be one of merchant, creator',
  ])
})

function issuesIn({ status, body }: Answer): string[] {
  assert.is(status, 400)
  const issues = body.issues as { path: string; message: string }[]
  return issues.map(({ path, message }) => `${path} ${message}`).sort()
}

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
