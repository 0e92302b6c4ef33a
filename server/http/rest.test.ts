import fastify from 'fastify'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { proceduresOf, publicProcedure, router } from '../platform/api/procedure.ts'
import type { Answer } from '../test/testkit/service-bed.ts'
import { isProblem, openTinyApi, type TinyApi, tinyRouter } from '../test/testkit/tiny-api.ts'
import { registerRest } from './rest.ts'

const it = suite<{ api: TinyApi }>('the REST adapter')

it.before(async (world) => {
  world.api = await openTinyApi()
})
it.after(({ api }) => api.close())

const paths = (answer: Answer) => (answer.body.issues as { path: string }[]).map((issue) => issue.path)

it('converts the texts of path and query by their schema', async ({ api }) => {
  const answer = await api.ask('GET', '/things/a%20b%2Fc?count=7&ratio=1.5&flag=false&tags=1&tags=2&kind=a')
  assert.equal(answer.body.got, { name: 'a b/c', count: 7, ratio: 1.5, flag: false, tags: [1, 2], kind: 'a' })
  assert.equal((await api.ask('GET', '/things/1?tags=3')).body.got, { name: '1', tags: [3] })
})

const REFUSED_QUERIES =
  'count=1.5 count=0x1 count=1e1 count=%201 count= count=101 count=1&count=2 flag=1 flag=yes flag=TRUE ratio=NaN tags=x kind=c'
for (const query of REFUSED_QUERIES.split(' ')) {
  it(`refuses ?${query}`, async ({ api }) => {
    const answer = await api.ask('GET', `/things/x?${query}`)
    isProblem(answer, 400, 'validation_failed')
    assert.is(paths(answer)[0]?.split('.')[0], query.split('=')[0])
  })
}

it('refuses unknown parameters and fields, and those in the wrong place', async ({ api }) => {
  for (const [method, path, body, refused] of [
    ['GET', '/things/x?other=1', undefined, 'other'],
    ['GET', '/things/x?name=y', undefined, 'name'],
    ['POST', '/things/x?count=1', { count: 1 }, 'count'],
    ['POST', '/things/x', { count: 1, name: 'y' }, 'name'],
    ['POST', '/things/x', { count: 1, role: 'admin' }, 'role'],
    ['POST', '/things/x', '{"count":1,"__proto__":{"flag":true}}', '__proto__'],
    ['POST', '/things/x', '{"count":1,"constructor":1}', 'constructor'],
  ] as const)
    assert.equal(paths(await api.ask(method, path, body)), [refused])
  isProblem(await api.ask('DELETE', '/things/x', { name: 'y' }), 400, 'validation_failed')
})

it('never converts a body', async ({ api }) => {
  // The schemas must not have learned to convert from a query before.
  await api.ask('GET', '/things/x?count=1')
  for (const body of [{ count: '1' }, { count: 1, flag: 'true' }])
    isProblem(await api.ask('POST', '/things/x', body), 400, 'validation_failed')
})

it("answers with the procedure's status and only with what its output names", async ({ api }) => {
  const made = await api.ask('POST', '/things/x', { count: 1 })
  assert.is(made.status, 201)
  assert.equal(made.body, { name: 'x', count: 1 })
  const cleared = await fetch(`${api.base}/things/x`, { method: 'DELETE' })
  assert.is(cleared.status, 204)
  assert.is(await cleared.text(), '')
})

it('takes a POST without a body where no field is needed', async ({ api }) => {
  for (const body of [undefined, {}, '']) assert.is((await api.ask('POST', '/poke', body)).status, 204)
  isProblem(await api.ask('POST', '/things/x'), 400, 'validation_failed')
})

it('refuses what is no JSON object, and takes UTF-8 that is named', async ({ api }) => {
  isProblem(await api.ask('POST', '/things/x', '"x"'), 400, 'validation_failed')
  const utf8 = 'application/json; charset="UTF-8"'
  assert.is((await api.ask('POST', '/things/x', '{"count":1}', utf8)).status, 201)
})

it('looks at path and method before the content type', async ({ api }) => {
  isProblem(await api.ask('POST', '/nothing', '<a/>', 'application/xml'), 404, 'not_found')
  const wrong = await api.ask('PUT', '/things/x?y=1', '<a/>', 'application/xml')
  isProblem(wrong, 405, 'method_not_allowed')
  assert.is(wrong.headers.get('allow'), 'DELETE, GET, HEAD, POST')
})

it('answers HEAD like GET without the body', async ({ api }) => {
  const response = await fetch(`${api.base}/things/x?count=7`, { method: 'HEAD' })
  assert.is(response.status, 200)
  assert.is(await response.text(), '')
  assert.is((await fetch(`${api.base}/things/x?count=x`, { method: 'HEAD' })).status, 400)
})

it('answers refusals with their status and headers, and bugs without their text', async ({ api }) => {
  isProblem(await api.ask('POST', '/things/x', { count: 13 }), 409, 'conflict')
  const later = await api.ask('POST', '/things/x', { count: 14 })
  isProblem(later, 503, 'unavailable')
  assert.is(later.headers.get('retry-after'), '7')
  for (const count of [15, 16]) {
    const bug = await api.ask('POST', '/things/x', { count })
    isProblem(bug, 500, 'internal')
    assert.not.match(JSON.stringify(bug.body), /hunter2|stack|zod|number/i)
  }
})

it('asks who calls before it looks at the input', async ({ api }) => {
  const answer = await api.ask('GET', '/guarded?n=x')
  isProblem(answer, 401, 'unauthenticated')
  assert.is(answer.headers.get('www-authenticate'), 'Bearer')
})

it('finds in tRPC what it reads from it: a canary for upgrades', () => {
  const record = tinyRouter._def.procedures as unknown as Record<string, { _def: Record<string, unknown> }>
  const definition = record['things.make']?._def
  assert.is(definition?.type, 'mutation')
  assert.ok(Array.isArray(definition?.inputs) && definition.inputs[0] instanceof z.ZodObject)
  assert.ok(definition?.output instanceof z.ZodObject)
  assert.is((definition?.meta as { callers?: unknown } | undefined)?.callers, 'public')
})

it('does not boot a procedure that no one gave callers to', () => {
  const bare = publicProcedure({ summary: 'x' }).meta({ callers: [], summary: 'x' })
  const unguarded = router({ things: router({ open: bare.query(() => 1) }) })
  assert.throws(() => proceduresOf(unguarded), /things\.open does not declare its callers/)
})

it('does not register a route whose input it cannot fill', async ({ api }) => {
  const register = async (bad: Parameters<typeof registerRest>[2]) => {
    const server = fastify()
    registerRest(server, api.platform, bad)
    await server.ready()
  }
  const bare = publicProcedure({ rest: { method: 'GET', path: '/x/:id' }, summary: 'x' })
  const loose = bare.input(z.object({ id: z.string() }))
  const without = bare.input(z.strictObject({ other: z.string() }))
  for (const [bad, why] of [
    [bare.query(() => 1), /needs one z\.strictObject/],
    [loose.query(() => 1), /must be strict/],
    [without.query(() => 1), /no field for :id/],
  ] as const) {
    const outcome = await register(router({ a: bad })).catch(String)
    assert.match(String(outcome), why)
  }
})

it.run()
