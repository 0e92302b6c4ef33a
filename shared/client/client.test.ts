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

const URL_OF_SERVICE = 'https://affiliates.example.pk'
const PAGE = { result: { data: { items: [], next_cursor: null } } }

/** A service that answers each call of a request alike, and remembers the requests. */
function stub(answer: unknown = PAGE, headers: Record<string, string> = {}) {
  const sent: Sent[] = []
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const url = new URL(String(input))
    sent.push({ url, headers: new Headers(init?.headers) })
    const calls = url.pathname.split(',').length
    return Response.json(Array(calls).fill(answer), { headers })
  }
  const tokens = () => sent.map((one) => one.headers.get('authorization'))
  return { sent, fetch, tokens }
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
  const { sent, fetch, tokens } = stub()
  let token: string | null = 'first'
  const client = createClient({ url: `${URL_OF_SERVICE}/base//`, token: () => token, fetch })
  const [one, two] = await Promise.all([client.offers.list.query({}), client.links.list.query({})])
  assert.equal([one, two], [PAGE.result.data, PAGE.result.data])
  assert.is(sent[0]?.url.href.split('?')[0], `${URL_OF_SERVICE}/base/trpc/offers.list,links.list`)
  token = null
  await client.offers.list.query({})
  assert.equal(tokens(), ['Bearer first', null])
})

test('sends the API key of a program', async () => {
  const { fetch, tokens } = stub()
  await createClient({ url: URL_OF_SERVICE, apiKey: 'afk_1', fetch }).offers.list.query({})
  assert.equal(tokens(), ['Bearer afk_1'])
})

test('sends a call with an idempotency key alone', async () => {
  const { sent, fetch, tokens } = stub()
  const one = async (...request: Parameters<typeof fetch>) => {
    const answer = await fetch(...request)
    return sent.at(-1)?.headers.has('idempotency-key')
      ? Response.json(((await answer.json()) as unknown[])[0])
      : answer
  }
  const client = createClient({ url: URL_OF_SERVICE, token: 'fixed', fetch: one })
  const job = { resource: 'sales', format: 'csv' } as const
  await Promise.all([
    client.jobs.startExport.mutate(job, { idempotencyKey: 'sales-of-november' }),
    client.jobs.startExport.mutate(job),
    client.offers.list.query({}),
  ])
  const keys = sent.map(({ url, headers }) => [url.pathname, headers.get('idempotency-key')])
  assert.equal(keys.sort(), [
    ['/trpc/jobs.startExport', null],
    ['/trpc/jobs.startExport', 'sales-of-november'],
    ['/trpc/offers.list', null],
  ])
  assert.equal(tokens(), Array(3).fill('Bearer fixed'))
})

test('sends no more calls at once than the service takes, and no longer addresses than proxies do', async () => {
  const { sent, fetch, tokens } = stub()
  const client = createClient({ url: URL_OF_SERVICE, token: 'fixed', fetch })
  await Promise.all(Array.from({ length: 25 }, () => client.offers.list.query({})))
  const sizes = sent.map(({ url }) => url.pathname.split(',').length)
  assert.equal([sizes, tokens()], [[10, 10, 5], Array(3).fill('Bearer fixed')])
  await Promise.all(Array.from({ length: 9 }, () => client.offers.list.query({ q: 'x'.repeat(400) })))
  assert.ok(sent.every(({ url }) => url.href.length <= 2100))
})

test('tells refusals apart by their problem', async () => {
  const { sent, fetch } = stub(REFUSED, { 'retry-after': '17' })
  const client = createClient({ url: URL_OF_SERVICE, fetch, retries: 0 })
  const error = await failureOf(client.offers.list.query({}))
  assert.is(sent.length, 1)
  assert.equal(problemIn(error), LIMITED)
  for (const codes of [[], ['rate_limited'], ['unavailable', 'rate_limited']] as const)
    assert.ok(isRefusal(error, ...codes), codes.join())
  if (isRefusal(error, 'rate_limited')) error.data.problem.code satisfies 'rate_limited'
  assert.not.ok(isRefusal(error, 'unavailable'))
  assert.is(retryAfter(error), 17)
})

test('finds no problem where the service named none', async () => {
  const away = async () => {
    throw new TypeError('fetch failed')
  }
  const error = await failureOf(createClient({ url: URL_OF_SERVICE, fetch: away }).offers.list.query({}))
  assert.instance(error, TRPCClientError)
  for (const other of [error, new Error('x'), null, 'text']) {
    assert.is(problemIn(other), null)
    assert.is(retryAfter(other), null)
    assert.not.ok(isRefusal(other, 'internal'))
  }
  const { fetch } = stub(REFUSED)
  const unsaid = await failureOf(createClient({ url: URL_OF_SERVICE, fetch }).auth.logout.mutate())
  assert.is(retryAfter(unsaid), null)
})

interface Scripted {
  body: unknown
  headers?: Record<string, string>
  status?: number
}

/** A service that answers each request with the next of these, and the last one again. */
function script(...answers: Scripted[]) {
  let requests = 0
  const fetch = async (_: unknown, init?: RequestInit) => {
    const { body, ...answer } = answers[Math.min(requests++, answers.length - 1)] ?? { body: null }
    const isAlone = new Headers(init?.headers).has('idempotency-key')
    return Response.json(isAlone ? body : [body], answer)
  }
  return { requests: () => requests, client: createClient({ url: URL_OF_SERVICE, fetch }) }
}

const AT_ONCE = { 'retry-after': '0' }

test('repeats what changes nothing after 429 and 503, twice at most, and a change that has a key', async () => {
  const job = { id: 'j', state: 'queued' }
  const exported = { resource: 'sales', format: 'csv' } as const
  const list = ({ client }: ReturnType<typeof script>) => client.offers.list.query({})
  const once = script({ body: REFUSED, headers: AT_ONCE, status: 429 }, { body: PAGE })
  assert.equal((await list(once)).items, [])
  const never = script({ body: REFUSED, headers: AT_ONCE, status: 503 })
  assert.ok(isRefusal(await failureOf(list(never))))
  // A proxy's, which names no problem and no time.
  const proxy = script({ body: 'busy', status: 503 }, { body: PAGE })
  assert.equal((await list(proxy)).items, [])
  const keyed = script({ body: REFUSED, headers: AT_ONCE, status: 503 }, { body: { result: { data: job } } })
  assert.equal(await keyed.client.jobs.startExport.mutate(exported, { idempotencyKey: 'k' }), job)
  assert.equal([once.requests(), never.requests(), proxy.requests(), keyed.requests()], [2, 3, 2, 2])
})

test('sends nothing for a call that was canceled before', async () => {
  const { requests, client } = script({ body: PAGE })
  const signal = AbortSignal.abort('the page was left')
  assert.match(String(await failureOf(client.offers.list.query({}, { signal }))), /the page was left/)
  assert.is(requests(), 0)
})

test('repeats no change, no other refusal, and nothing that is far away', async () => {
  const change = script({ body: REFUSED, headers: AT_ONCE, status: 429 })
  await failureOf(change.client.auth.logout.mutate())
  const problem = { ...LIMITED, status: 404, code: 'not_found' }
  const unknown = { error: { ...REFUSED.error, data: { ...REFUSED.error.data, problem } } }
  const other = script({ body: unknown, headers: AT_ONCE, status: 404 })
  await failureOf(other.client.offers.list.query({}))
  const later = script({ body: REFUSED, headers: { 'retry-after': '61' }, status: 429 })
  await failureOf(later.client.offers.list.query({}))
  assert.equal([change.requests(), other.requests(), later.requests()], [1, 1, 1])
})

/** A service that never answers; its requests end by their signal only. */
function silence() {
  const ended: unknown[] = []
  const fetch = (_: unknown, init?: RequestInit) =>
    new Promise<Response>((_, reject) =>
      init?.signal?.addEventListener('abort', () => {
        ended.push(init.signal?.aborted)
        reject(init.signal?.reason)
      }),
    )
  return { ended, fetch }
}

test('ends a call that takes too long, and one that is canceled', async () => {
  const { ended, fetch } = silence()
  const short = createClient({ url: URL_OF_SERVICE, fetch, timeout: 5 })
  assert.match(String(await failureOf(short.offers.list.query({}))), /No answer after 5 ms/)
  const long = createClient({ url: URL_OF_SERVICE, fetch })
  const canceled = new AbortController()
  const failed = failureOf(long.offers.list.query({}, { signal: canceled.signal }))
  await Promise.resolve()
  canceled.abort()
  assert.instance(await failed, Error)
  const waiting = script({ body: REFUSED, headers: { 'retry-after': '50' }, status: 429 })
  const stop = new AbortController()
  const given = failureOf(waiting.client.offers.list.query({}, { signal: stop.signal }))
  while (waiting.requests() === 0) await new Promise(setImmediate)
  stop.abort()
  await given
  assert.is(waiting.requests(), 1)
  assert.ok(ended.length >= 1)
})

test('reads a list to its end, page by page', async () => {
  const inputs: unknown[] = []
  const fetch = async (address: string | URL | Request) => {
    const input = JSON.parse(new URL(String(address)).searchParams.get('input') ?? '')[0]
    inputs.push(input)
    const page = input.cursor ? { items: [3], next_cursor: null } : { items: [1, 2], next_cursor: 'more' }
    return Response.json([{ result: { data: page } }])
  }
  const client = createClient({ url: URL_OF_SERVICE, fetch })
  const seen: unknown[] = []
  for await (const sale of client.pages(client.sales.list, { acceptance_status: 'accepted' })) seen.push(sale)
  assert.equal(seen, [1, 2, 3])
  const input = { limit: 100, acceptance_status: 'accepted' }
  assert.equal(inputs, [input, { ...input, cursor: 'more' }])
  for await (const _ of client.pages(client.offers.list)) break
  assert.is(inputs.length, 3, 'a page that nothing asks for is not read')
})

test('says that the address is missing', () => {
  for (const options of [undefined, {}, { url: '' }, { url: '/api' }, { url: 'affiliates.example.pk' }]) {
    assert.throws(() => createClient(options as never), /url is missing: pass the address of the service/)
  }
})

test("uses the platform's fetch unless given one", async () => {
  const { sent, fetch } = stub()
  const original = globalThis.fetch
  globalThis.fetch = fetch
  try {
    await createClient({ url: URL_OF_SERVICE }).offers.list.query({})
  } finally {
    globalThis.fetch = original
  }
  assert.is(sent.length, 1)
})

test.run()
