import { TRPCClientError } from '@trpc/client'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Problem } from '../error-codes.ts'
import { createClient, isRefusal, problemIn, retryAfter } from './index.ts'

interface Sent {
  url: URL
  headers: Headers
}

const LIMITED: Problem = {
  type: 'about:blank',
  title: 'Too Many Requests',
  status: 429,
  detail: 'Try again later.',
  code: 'rate_limited',
  request_id: '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e',
}
const REFUSED = {
  error: {
    message: LIMITED.detail,
    code: -32029,
    data: { code: 'TOO_MANY_REQUESTS', httpStatus: 429, problem: LIMITED },
  },
}

/** A service that answers each call of a request alike, and remembers the requests. */
function stub(answer: unknown, headers: Record<string, string> = {}) {
  const sent: Sent[] = []
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const url = new URL(String(input))
    sent.push({ url, headers: new Headers(init?.headers) })
    const calls = url.pathname.split(',').length
    return Response.json(Array(calls).fill(answer), { headers })
  }
  return { sent, fetch }
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

test('sends the calls of one moment together, with the token of that moment', async () => {
  const { sent, fetch } = stub({ result: { data: { items: [], next_cursor: null } } })
  let token: string | null = 'first'
  const client = createClient({ url: 'https://affiliates.example.pk/base//', token: () => token, fetch })
  const [one, two] = await Promise.all([client.offers.list.query({}), client.links.list.query({})])
  assert.equal(one, { items: [], next_cursor: null })
  assert.equal(two, one)
  assert.is(sent.length, 1)
  assert.is(sent[0]?.url.origin, 'https://affiliates.example.pk')
  assert.is(sent[0]?.url.pathname, '/base/trpc/offers.list,links.list')
  assert.is(sent[0]?.headers.get('authorization'), 'Bearer first')
  token = null
  await client.offers.list.query({})
  assert.is(sent[1]?.headers.get('authorization'), null)
})

test('sends the API key of a program', async () => {
  const { sent, fetch } = stub({ result: { data: { items: [], next_cursor: null } } })
  const client = createClient({ url: 'https://affiliates.example.pk', apiKey: 'afk_1', fetch })
  await client.offers.list.query({})
  assert.is(sent[0]?.headers.get('authorization'), 'Bearer afk_1')
})

test('sends no more calls at once than the service takes, and no longer addresses than proxies do', async () => {
  const { sent, fetch } = stub({ result: { data: { items: [], next_cursor: null } } })
  const client = createClient({ url: 'https://affiliates.example.pk', token: 'fixed', fetch })
  await Promise.all(Array.from({ length: 25 }, () => client.offers.list.query({})))
  assert.equal(
    sent.map(({ url }) => url.pathname.split(',').length),
    [10, 10, 5],
  )
  assert.ok(sent.every(({ headers }) => headers.get('authorization') === 'Bearer fixed'))
  await Promise.all(Array.from({ length: 9 }, () => client.offers.list.query({ q: 'x'.repeat(400) })))
  assert.ok(sent.every(({ url }) => url.href.length <= 2100))
})

test('tells refusals apart by their problem', async () => {
  const { fetch } = stub(REFUSED, { 'retry-after': '17' })
  const error = await failureOf(createClient({ url: 'https://a.example', fetch }).offers.list.query({}))
  assert.equal(problemIn(error), LIMITED)
  assert.ok(isRefusal(error, 'unavailable', 'rate_limited'))
  assert.not.ok(isRefusal(error, 'unavailable'))
  assert.is(retryAfter(error), 17)
})

test('finds no problem where the service named none', async () => {
  const away = async () => {
    throw new TypeError('fetch failed')
  }
  const error = await failureOf(createClient({ url: 'https://a.example', fetch: away }).offers.list.query({}))
  assert.instance(error, TRPCClientError)
  for (const other of [error, new Error('x'), null, 'text']) {
    assert.is(problemIn(other), null)
    assert.is(retryAfter(other), null)
    assert.not.ok(isRefusal(other, 'internal'))
  }
  const { fetch } = stub(REFUSED)
  assert.is(
    retryAfter(await failureOf(createClient({ url: 'https://a.example', fetch }).offers.list.query({}))),
    null,
  )
})

test('says that the address is missing', () => {
  for (const options of [undefined, {}, { url: '' }, { url: '/api' }, { url: 'affiliates.example.pk' }]) {
    assert.throws(() => createClient(options as never), /url is missing: pass the address of the service/)
  }
})

test("uses the platform's fetch unless given one", async () => {
  const { sent, fetch } = stub({ result: { data: { items: [], next_cursor: null } } })
  const original = globalThis.fetch
  globalThis.fetch = fetch
  try {
    await createClient({ url: 'https://a.example' }).offers.list.query({})
  } finally {
    globalThis.fetch = original
  }
  assert.is(sent.length, 1)
})

test.run()
