import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'

const it = suite<{ bed: WebTestbed }>('CORS for two origins')

const PAGE = 'https://app.example.com'
const LOCAL = 'http://localhost:5173'

it.before(async (world) => {
  world.bed = await openWebTestbed('sqlite', { CORS_ORIGINS: `${PAGE}, ${LOCAL}` })
})
it.after(({ bed }) => bed.close())

const preflight = (bed: WebTestbed, path: string, origin: string) =>
  bed.ask('OPTIONS', path, {
    headers: {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization,content-type',
    },
  })

it('answers preflights on REST and tRPC', async ({ bed }) => {
  for (const path of ['/offers', '/me', '/trpc/offers.list']) {
    const answer = await preflight(bed, path, PAGE)
    assert.is(answer.status, 204)
    assert.is(answer.headers.get('access-control-allow-origin'), PAGE)
    assert.match(answer.headers.get('access-control-allow-methods') ?? '', /\bPATCH\b/)
    const allowed = (answer.headers.get('access-control-allow-headers') ?? '').toLowerCase()
    for (const name of ['authorization', 'content-type', 'trpc-accept', 'last-event-id'])
      assert.ok(allowed.includes(name), name)
    assert.is(answer.headers.get('access-control-max-age'), '600')
    assert.is(answer.headers.get('access-control-allow-credentials'), null)
    assert.match(answer.headers.get('vary') ?? '', /\borigin\b/i)
  }
})

it('lets the named origins read answers, refusals and the headers that matter', async ({ bed }) => {
  for (const origin of [PAGE, LOCAL]) {
    for (const [path, status] of [
      ['/offers', 200],
      ['/me', 401],
      ['/no/such/path', 404],
      ['/trpc/offers.list?input=%7B%7D', 200],
    ] as const) {
      const answer = await bed.ask('GET', path, { headers: { origin } })
      assert.is(answer.status, status)
      assert.is(answer.headers.get('access-control-allow-origin'), origin, path)
      assert.is(answer.headers.get('access-control-allow-credentials'), null)
      const exposed = (answer.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ')
      for (const name of ['x-request-id', 'retry-after', 'ratelimit-remaining', 'location'])
        assert.ok(exposed.includes(name), name)
    }
  }
})

it('lets no other origin', async ({ bed }) => {
  for (const origin of [
    'https://evil.example',
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com.evil.example',
    'null',
  ]) {
    assert.is((await preflight(bed, '/offers', origin)).headers.get('access-control-allow-origin'), null)
    const answer = await bed.ask('GET', '/offers', { headers: { origin } })
    assert.is(answer.status, 200)
    assert.is(answer.headers.get('access-control-allow-origin'), null, origin)
  }
})

it.run()
