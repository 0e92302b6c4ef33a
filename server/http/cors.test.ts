import * as assert from 'uvu/assert'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'

const PAGE = 'https://app.example.com'
const LOCAL = 'http://localhost:5173'

const it = webSuite('CORS for two origins', 'sqlite', { CORS_ORIGINS: `${PAGE}, ${LOCAL}` })

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
    const { status, headers } = await preflight(bed, path, PAGE)
    const names = ['allow-origin', 'max-age', 'allow-credentials']
    const [origin, age, credentials] = names.map((name) => headers.get(`access-control-${name}`))
    assert.equal([status, origin, age, credentials], [204, PAGE, '600', null], path)
    assert.match(headers.get('access-control-allow-methods') ?? '', /\bPATCH\b/)
    const allowed = (headers.get('access-control-allow-headers') ?? '').toLowerCase()
    for (const name of ['authorization', 'content-type', 'trpc-accept', 'last-event-id'])
      assert.ok(allowed.includes(name), name)
    assert.match(headers.get('vary') ?? '', /\borigin\b/i)
  }
})

it('lets the named origins read answers, refusals and the headers that matter', async ({ bed }) => {
  const paths = { '/offers': 200, '/me': 401, '/no/such/path': 404, '/trpc/offers.list?input=%7B%7D': 200 }
  for (const origin of [PAGE, LOCAL]) {
    for (const [path, expected] of Object.entries(paths)) {
      const { status, headers } = await bed.ask('GET', path, { headers: { origin } })
      const names = ['allow-origin', 'allow-credentials']
      const [allowed, credentials] = names.map((name) => headers.get(`access-control-${name}`))
      assert.equal([status, allowed, credentials], [expected, origin, null], path)
      const exposed = (headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ')
      for (const name of ['x-request-id', 'retry-after', 'ratelimit-remaining', 'location'])
        assert.ok(exposed.includes(name), name)
    }
  }
})

it('lets no other origin', async ({ bed }) => {
  const others = 'https://evil.example http://app.example.com https://app.example.com:8443 null'
  for (const origin of [...others.split(' '), 'https://app.example.com.evil.example']) {
    const asked = await preflight(bed, '/offers', origin)
    const answer = await bed.ask('GET', '/offers', { headers: { origin } })
    assert.is(answer.status, 200)
    for (const { headers } of [asked, answer])
      assert.is(headers.get('access-control-allow-origin'), null, origin)
  }
})

it.run()
