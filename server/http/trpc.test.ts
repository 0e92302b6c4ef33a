import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { call } from '../test/testkit/service-bed.ts'
import { openTinyApi, type TinyApi } from '../test/testkit/tiny-api.ts'
import { MAX_BATCH } from './trpc.ts'

const it = suite<{ api: TinyApi }>('the tRPC mount')

it.before(async (world) => {
  world.api = await openTinyApi()
})
it.after(({ api }) => api.close())

it('gives tRPC the same problems', async ({ api }) => {
  const trpc = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${api.base}/trpc/${path}`, init)
    const body = (await response.json()) as { error?: { data: { problem: Record<string, unknown> } } }
    return { response, body, problem: body.error?.data.problem }
  }
  const post = (count: number) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'x', count }),
  })
  const ok = await trpc('things.make', post(1))
  assert.equal(ok.body as unknown, { result: { data: { name: 'x', count: 1 } } })
  for (const [count, status, code] of [
    [13, 409, 'conflict'],
    [14, 503, 'unavailable'],
    [15, 500, 'internal'],
  ] as const) {
    const { response, problem, body } = await trpc('things.make', post(count))
    assert.equal([response.status, problem?.code], [status, code])
    assert.match(String(problem?.request_id), /^[0-9a-f-]{36}$/)
    assert.not.match(JSON.stringify(body), /hunter2|stack/)
    if (count === 14) assert.is(response.headers.get('retry-after'), '7')
  }
  for (const [path, init, code] of [
    ['things.make', { ...post(1), body: '{' }, 'malformed_json'],
    ['things.make', { ...post(1), body: '{}' }, 'validation_failed'],
    ['things.make', undefined, 'method_not_allowed'],
    ['nothing.here', undefined, 'not_found'],
    ['things.guarded?input=%7B%22n%22:1%7D', undefined, 'unauthenticated'],
  ] as const)
    assert.is((await trpc(path, init)).problem?.code, code, path)
})

it('lists the problems of one input as REST does, in the same order', async ({ api }) => {
  const wrong = { zebra: 1, flag: 2, count: 'x', apple: 2 }
  const rest = await call(api.base, 'POST', '/things/lamp', { body: wrong })
  const trpc = await call(api.base, 'POST', '/trpc/things.make', { body: { name: 'lamp', ...wrong } })
  assert.equal(trpc.body.error.data.problem.issues, rest.body.issues)
  assert.is(rest.body.issues.length, 4)
})

it('takes an input that is left out where nothing is required', async ({ api }) => {
  const ask = (path: string, init?: RequestInit) => fetch(`${api.base}/trpc/${path}`, init)
  const json = { 'content-type': 'application/json' }
  for (const init of [{}, { headers: json }, { headers: json, body: '' }, { headers: json, body: '{}' }]) {
    const answer = await ask('things.poke', { method: 'POST', ...init })
    assert.is(answer.status, 200, await answer.text())
  }
  const batch = await ask('things.poke,things.poke?batch=1', { method: 'POST' })
  assert.is(batch.status, 200)
  assert.is(((await batch.json()) as unknown[]).length, 2)
  assert.is((await ask('things.make', { method: 'POST' })).status, 400, 'something is required')
  assert.is((await ask('things.echo')).status, 400)
  const wrong = { method: 'POST', headers: json, body: '{"extra":1}' }
  assert.is((await ask('things.poke', wrong)).status, 400, 'strict as ever')
  const bytes = new TextEncoder().encode('{}')
  assert.is((await ask('things.poke', { method: 'POST', body: bytes })).status, 415, 'a body of no type')
})

it('bounds tRPC batches', async ({ api }) => {
  const batch = (size: number) => {
    const names = Array(size).fill('things.echo').join(',')
    const input = Object.fromEntries(Array.from({ length: size }, (_, index) => [index, { name: 'x' }]))
    return fetch(`${api.base}/trpc/${names}?batch=1&input=${encodeURIComponent(JSON.stringify(input))}`)
  }
  assert.is((await batch(MAX_BATCH)).status, 200)
  const refused = await batch(MAX_BATCH + 1)
  assert.is(refused.status, 400)
  assert.is(refused.headers.get('content-type'), 'application/json')
  const body = JSON.stringify(await refused.json())
  assert.match(body, /"code":"validation_failed"/)
  assert.match(body, /"request_id":"[0-9a-f-]{36}"/)
})

it.run()
