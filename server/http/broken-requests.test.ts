import { once } from 'node:events'
import { connect } from 'node:net'
import * as assert from 'uvu/assert'
import { accessOf, addLink, addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { orderHeaders } from '../test/testkit/orders.ts'
import { addUser, setSuspended } from '../test/testkit/people.ts'
import { assertNone } from '../test/testkit/pluck.ts'
import { call } from '../test/testkit/service-bed.ts'
import { type LogLine, linesOf, webSuite } from '../test/testkit/web.ts'

const it = webSuite<{ lines: LogLine[] }>('what cannot be answered as asked')

/** Each way in, with a body that it would take. */
const WAYS = {
  REST: { path: '/auth/login', body: '{"email":"a@example.pk","password":"x"}', limit: 256 * 1024 },
  tRPC: { path: '/trpc/auth.login', body: '{"email":"a@example.pk","password":"x"}', limit: 256 * 1024 },
  'the store webhook': { path: '/webhooks/store-sales', body: '{}', limit: 2 * 1024 * 1024 },
  'the processor webhook': { path: '/webhooks/processor', body: '{}', limit: 2 * 1024 * 1024 },
}
type Way = keyof typeof WAYS

const JSON_TYPE = 'application/json'
interface Broken {
  name: string
  method?: string
  path?: (path: string) => string
  type?: string
  body?: (way: (typeof WAYS)[Way]) => Buffer | string
  headers?: Record<string, string>
  /** Status and code. Webhooks read no JSON: unless something else is wrong, the signature is. */
  api: readonly [number, string]
  webhook?: readonly [number, string]
}

const UNSIGNED = [401, 'invalid_signature'] as const
const MALFORMED = [400, 'malformed_json'] as const
const INVALID = [400, 'validation_failed'] as const
const TYPE = [415, 'unsupported_media_type'] as const
const LARGE = [413, 'payload_too_large'] as const
const BROKEN: Broken[] = [
  { name: 'an unknown path', path: (path) => `${path}/nothing`, api: [404, 'not_found'] },
  { name: 'a wrong method', method: 'PUT', api: [405, 'method_not_allowed'] },
  { name: 'a body that is too large', body: ({ limit }) => Buffer.alloc(limit + 1, 0x20), api: LARGE },
  { name: 'malformed JSON', body: () => '{"email":', api: MALFORMED, webhook: UNSIGNED },
  { name: 'no UTF-8', body: () => Buffer.from([0x22, 0xff, 0x22]), api: MALFORMED, webhook: UNSIGNED },
  { name: 'a wrong content type', type: 'text/xml', api: TYPE, webhook: UNSIGNED },
  { name: 'a content type that is none', type: 'nonsense', api: TYPE },
  { name: 'an unsupported charset', type: `${JSON_TYPE}; charset=utf-16`, api: TYPE, webhook: UNSIGNED },
  { name: 'a compressed body', headers: { 'content-encoding': 'gzip' }, api: TYPE, webhook: UNSIGNED },
  { name: 'JSON of another shape', body: () => '[1]', api: INVALID, webhook: UNSIGNED },
  { name: 'no body', body: () => '', api: INVALID, webhook: UNSIGNED },
  { name: 'a path that is wrongly encoded', path: (path) => `${path}%zz`, api: INVALID },
]

it.before(async (world) => {
  world.lines = linesOf(world.bed.platform)
  // Below debug, requests that a webhook refuses are summarized instead of logged one by one.
  Object.assign(world.bed.platform.log, { isLevelEnabled: () => true })
})

for (const [name, way] of Object.entries(WAYS)) {
  for (const broken of BROKEN) {
    it(`${name}: ${broken.name}`, async ({ bed, lines }) => {
      const [status, code] = (name.includes('webhook') && broken.webhook) || broken.api
      lines.length = 0
      const answer = await call(bed.base, broken.method ?? 'POST', broken.path?.(way.path) ?? way.path, {
        raw: broken.body?.(way) ?? way.body,
        headers: { 'content-type': broken.type ?? JSON_TYPE, ...broken.headers },
      })
      const problem = answer.body?.error?.data?.problem ?? answer.body
      assert.equal([problem.code, answer.status], [code, status], JSON.stringify(answer.body))
      assert.equal([problem.status, problem.type, typeof problem.detail], [status, 'about:blank', 'string'])
      const isTrpc = answer.body.error !== undefined
      const type = isTrpc ? /^application\/json/ : /^application\/problem\+json$/
      assert.match(answer.headers.get('content-type') ?? '', type)
      assert.is(answer.headers.get('x-content-type-options'), 'nosniff')
      assert.is(answer.headers.get('cache-control'), 'no-store')
      assert.is(answer.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null)
      const id = answer.headers.get('x-request-id')
      assert.match(id ?? '', /^[0-9a-f-]{36}$/)
      assert.is(problem.request_id, id)
      const logged = lines.find((line) => line.message === 'request')
      assert.equal([logged?.requestId, logged?.status], [id, status])
      assert.not.match(JSON.stringify(answer.body), /stack|node_modules|FST_|SyntaxError/)
    })
  }
}

it('answers what is no HTTP, and goes on', async ({ bed }) => {
  const { hostname, port } = new URL(bed.base)
  for (const [sent, status] of [
    ['nonsense\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    [`GET /offers?q=${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
    ['POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    // Methods that tRPC's adapter cannot even read.
    ['TRACE /trpc/offers.list HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 405],
  ] as const) {
    const socket = connect(Number(port), hostname, () => socket.write(sent))
    const text = Buffer.concat(await socket.toArray()).toString()
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} `), sent.slice(0, 40))
    const [head = '', body = ''] = text.split('\r\n\r\n')
    assert.match(head, /^content-type: application\/problem\+json$/im)
    assert.is(Number(/^content-length: (\d+)$/im.exec(head)?.[1]), Buffer.byteLength(body))
    const problem = JSON.parse(body)
    assert.equal([problem.type, problem.status], ['about:blank', status])
    assert.is(problem.request_id, /^x-request-id: (\S+)$/im.exec(head)?.[1])
  }
  assert.is((await bed.ask('GET', '/healthz')).status, 200)
})

it('answers what announces no body as it answers an empty one, on every way in', async ({ bed }) => {
  const { hostname, port } = new URL(bed.base)
  const statusOf = async (path: string, more: string) => {
    const lead = `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n`
    const socket = connect(Number(port), hostname, () => socket.write(`${lead}${more}\r\n`))
    const text = Buffer.concat(await socket.toArray()).toString()
    return Number(/^HTTP\/1.1 (\d+) /.exec(text)?.[1])
  }
  for (const path of [...Object.values(WAYS).map((way) => way.path), '/nothing']) {
    const status = await statusOf(path, '')
    assert.ok(status >= 400 && status < 500, path)
    assert.is(status, await statusOf(path, 'Content-Length: 0\r\n'), path)
  }
})

it('takes a client that goes away in the middle of its body for no bug', async ({ bed, lines }) => {
  lines.length = 0
  const { hostname, port } = new URL(bed.base)
  for (const { path } of Object.values(WAYS)) {
    const lead = `POST ${path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n`
    const head = `${lead}Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n{"`
    const socket = connect(Number(port), hostname, () => socket.write(head))
    await once(socket, 'data')
    await once(socket.resetAndDestroy(), 'close')
    assert.is((await bed.ask('GET', '/healthz')).status, 200)
  }
  assertNone(lines, ({ message }) => message === 'bug')
})

const EVERYWHERE = {
  'content-security-policy': "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'origin-agent-cluster': '?1',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'DENY',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
  'cache-control': 'no-store',
}

it('sends every answer with the headers that keep it data', async ({ bed }) => {
  const paths = '/offers /me /openapi.json /healthz /go/none /no/such/path /trpc/offers.list /metrics'
  for (const path of paths.split(' ')) {
    const { headers } = await bed.ask('HEAD', path)
    // A client may keep a public page of offers, and the document, if it revalidates them each time.
    const kept = ['/offers', '/openapi.json'].includes(path) ? { 'cache-control': 'public, no-cache' } : {}
    for (const [name, value] of Object.entries({ ...EVERYWHERE, ...kept }))
      assert.is(headers.get(name), value, `${name} at ${path}`)
    for (const name of ['server', 'x-powered-by', 'set-cookie']) assert.is(headers.get(name), null, name)
  }
})

it('gives visitors of links and accepted webhooks, which no browser shows, only headers that mean something', async ({
  bed,
}) => {
  const { platform, base } = bed
  const merchant = await addMerchant(platform)
  const offer = await addLiveOffer(platform, merchant)
  const { slug } = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
  const body = '{"id":1}'
  const visit = () => fetch(`${base}/go/${slug}`, { redirect: 'manual' })
  const deliver = (secret: string) => {
    const headers = orderHeaders({ ...accessOf(merchant), secret }, 'one', body)
    return fetch(`${base}/webhooks/store-sales`, { method: 'POST', body, headers })
  }
  const suspended = async () => {
    await setSuspended(platform, merchant.userId, true)
    return visit()
  }
  const cases: [answer: () => Promise<Response>, status: number, isShown: boolean][] = [
    [visit, 302, false],
    [() => deliver(accessOf(merchant).secret), 200, false],
    [() => deliver('wrong'), 401, true],
    [suspended, 410, true],
  ]
  for (const [ask, status, isShown] of cases) {
    const answer = await ask()
    const { headers } = answer
    assert.is(answer.status, status)
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    const always = ['cache-control', 'strict-transport-security', 'x-content-type-options']
    for (const name of [...always, 'cross-origin-resource-policy'])
      assert.is(headers.get(name), EVERYWHERE[name as keyof typeof EVERYWHERE], `${name} of ${status}`)
    for (const name of ['content-security-policy', 'x-frame-options'])
      assert.is(headers.has(name), isShown, `${name} of ${status}`)
    if (status === 200) assert.is(await answer.text(), '{"received":true}')
  }
})

it.run()
