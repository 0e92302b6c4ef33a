import { mock } from 'node:test'
import { createTRPCClient, httpBatchLink, httpBatchStreamLink } from '@trpc/client'
import { suite, type Test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  codesOf,
  creatorAt,
  from,
  isLimited,
  isLocked,
  logIn,
  logOwnerIn,
  OWNER,
  registerOwner,
} from '../test/testkit/limited-calls.ts'
import { call } from '../test/testkit/service-bed.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { PASSWORD } from '../test/testkit/web-people.ts'
import type { AppRouter } from './router.ts'

const AUTH = 5
const PUBLIC = 7

/** Windows are counted by the process' own clock. */
const pass = (ms: number) => mock.timers.tick(ms)

/** A suite that opens a service for each test, under a clock that stands still. */
function limitedSuite(name: string, settings: Record<string, string>): Test<{ bed: WebTestbed }> {
  const it = suite<{ bed: WebTestbed }>(name)
  it.before.each(async (world) => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-01T07:00:00Z') })
    world.bed = await openWebTestbed('sqlite', { ...settings, TRUST_PROXY: 'loopback' })
  })
  it.after.each(async ({ bed }) => {
    mock.timers.reset()
    await bed.close()
  })
  return it
}

const limits = { RATE_LIMIT_AUTH: String(AUTH), RATE_LIMIT_PUBLIC: String(PUBLIC) }
const it = limitedSuite('rate limits', limits)

/** The client sends at most ten calls in a request. */
function batchOf(bed: WebTestbed, address: string, link: typeof httpBatchLink | typeof httpBatchStreamLink) {
  const links = [link({ url: `${bed.base}/trpc`, headers: from(address), maxItems: 10 })]
  return createTRPCClient<AppRouter>({ links })
}

it('counts log-ins and registrations of one address together, for all accounts', async ({ bed }) => {
  for (let left = AUTH - 1; left >= 1; left -= 1) {
    const answer = await logIn(bed, `person${left}@example.pk`, '203.0.113.1')
    const counts = ['limit', 'remaining'].map((name) => answer.headers.get(`ratelimit-${name}`))
    assert.equal([answer.status, ...counts], [401, String(AUTH), String(left)])
  }
  await creatorAt(bed, 'new@example.pk', '203.0.113.1')
  isLimited(await logIn(bed, 'other@example.pk', '203.0.113.1'), AUTH)
  assert.is((await logIn(bed, 'other@example.pk', '203.0.113.2')).status, 401, 'another address')
  pass(MINUTE)
  assert.is((await logIn(bed, 'other@example.pk', '203.0.113.1')).status, 401, 'a minute later')
})

it('counts wrong passwords of one account and address, however its e-mail is written', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  const spellings = ['victim@example.pk', ' Victim@Example.pk ', 'VICTIM@EXAMPLE.PK']
  for (let index = 0; index < AUTH; index += 1) {
    const answer = await logIn(bed, spellings[index % spellings.length] as string, '203.0.113.5')
    assert.is(answer.status, 401)
    pass(MINUTE)
  }
  isLocked(await logOwnerIn(bed, '203.0.113.5'))
  assert.is((await logIn(bed, 'another@example.pk', '203.0.113.5')).status, 401, 'another account')
  assert.is((await logOwnerIn(bed, '203.0.113.6')).status, 200, 'another address')
  pass(15 * MINUTE)
  assert.is((await logOwnerIn(bed, '203.0.113.5')).status, 200)
})

it('does not count what the owner mistyped before the right password', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  pass(MINUTE)
  for (let round = 0; round < 2; round += 1) {
    for (let index = 0; index < AUTH - 1; index += 1) {
      assert.is((await logIn(bed, OWNER.email, '192.0.2.1')).status, 401)
    }
    assert.is((await logOwnerIn(bed, '192.0.2.1')).status, 200)
    pass(MINUTE)
  }
})

it('does not let an address that is stopped use up the tries of others', async ({ bed }) => {
  for (let index = 0; index < 3 * AUTH; index += 1) await logIn(bed, `p${index}@example.pk`, '203.0.113.1')
  for (let index = 0; index < 3 * AUTH; index += 1) await logIn(bed, 'victim@example.pk', '203.0.113.1')
  assert.is((await logIn(bed, 'victim@example.pk', '203.0.113.2')).status, 401)
})

for (const [name, link] of Object.entries({ httpBatchLink, httpBatchStreamLink })) {
  it(`counts each call of a tRPC batch: ${name}`, async ({ bed }) => {
    const guess = async (address: string, emails: string[]) => {
      const { auth } = batchOf(bed, address, link)
      return new Set(await codesOf(emails.map((email) => auth.login.mutate({ email, password: 'guess' }))))
    }
    const all = Array.from({ length: AUTH + 1 }, (_, index) => `p${index}@example.pk`)
    assert.equal(await guess('203.0.113.7', all), new Set(['rate_limited']), 'none of them runs')
    isLimited(await logIn(bed, 'p@example.pk', '203.0.113.7'), AUTH)

    const one = Array(AUTH).fill('victim@example.pk')
    assert.equal(await guess('203.0.113.8', one), new Set(['invalid_credentials']))
    assert.is((await logIn(bed, 'victim@example.pk', '203.0.113.9')).status, 401)
    pass(MINUTE)
    isLocked(await logIn(bed, 'victim@example.pk', '203.0.113.8'))
  })
}

it('counts tRPC calls whose path is encoded twice, and answers with status and headers', async ({ bed }) => {
  const body = Object.fromEntries(
    ['a', 'b'].map((name, at) => [at, { email: `${name}@x.pk`, password: 'x' }]),
  )
  const ask = (path: string) =>
    call(bed.base, 'POST', `/trpc/${path}`, { body, headers: from('203.0.113.20') })
  for (let index = 0; index < AUTH + 2; index += 1) await ask('auth%252Elogin,auth.login?batch=1')
  const { status, headers, body: answers } = await ask('auth.login?batch=1')
  assert.equal([status, headers.get('ratelimit-remaining')], [429, '0'])
  assert.ok(Number(headers.get('retry-after')) >= 1)
  const { code, data } = answers[0].error
  assert.equal([code, data.code, data.problem.code], [-32029, 'TOO_MANY_REQUESTS', 'rate_limited'])
  assert.is(data.problem.request_id, headers.get('x-request-id'))
})

/** Tries of the current password. */
const CHANGE = { current_password: 'a guess', new_password: 'another long passphrase' }
const guessedDestination = (title: string, current_password = 'a guess') => ({
  payout_destination: { iban: 'PK36SCBL0000001123456702', account_title: title },
  current_password,
})

const tryBy = (bed: WebTestbed, token: string, address: string) => ({
  password: () => bed.ask('POST', '/auth/password', { body: CHANGE, token, headers: from(address) }),
  destination: (title: string, password?: string) =>
    bed.ask('PATCH', '/me', { body: guessedDestination(title, password), token, headers: from(address) }),
})

it('counts every try of the current password: an address at any accounts', async ({ bed }) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const other = await creatorAt(bed, 'two@example.pk', '192.0.2.2')
  const address = '192.0.2.50'
  for (let index = 0; index < AUTH; index += 1) {
    const caller = tryBy(bed, index % 2 ? token : other, address)
    const answer = await (index < 2 ? caller.password() : caller.destination(`T ${index}`))
    assert.not.equal(answer.status, 429)
    assert.is(answer.headers.get('ratelimit-remaining'), String(AUTH - 1 - index))
  }
  isLimited(await tryBy(bed, token, address).destination('T', PASSWORD), AUTH)
  isLimited(await tryBy(bed, token, address).password(), AUTH)
  isLimited(await logIn(bed, 'three@example.pk', address), AUTH)
  assert.is((await tryBy(bed, token, '192.0.2.51').destination('T', PASSWORD)).status, 200)
})

it('counts every try of the current password: an account in all sessions and routes', async ({ bed }) => {
  const address = '203.0.113.60'
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const login = { body: { email: 'one@example.pk', password: PASSWORD }, headers: from('192.0.2.2') }
  const second = String((await bed.ask('POST', '/auth/login', login)).body.token)
  const [one, two] = [tryBy(bed, token, address), tryBy(bed, second, address)]
  assert.is((await one.destination('First', PASSWORD)).status, 200)
  pass(MINUTE)
  const headers = { ...from(address), authorization: `Bearer ${second}` }
  const client = createTRPCClient<AppRouter>({ links: [httpBatchLink({ url: `${bed.base}/trpc`, headers })] })
  const overTrpc = await codesOf([
    client.users.updateMe.mutate(guessedDestination('Second')),
    client.auth.changePassword.mutate(CHANGE),
  ])
  assert.equal(overTrpc, ['invalid_credentials', 'invalid_credentials'])
  for (const answer of [
    await one.destination('Third'),
    await two.password(),
    await logIn(bed, 'one@example.pk', address),
  ])
    assert.is(answer.body.code, 'invalid_credentials')

  pass(MINUTE)
  isLocked(await one.destination('Fourth', PASSWORD))
  isLocked(await two.password())
  isLocked(await bed.ask('POST', '/auth/login', { ...login, headers: from(address) }))
  const right = guessedDestination('Fourth', PASSWORD)
  assert.equal(await codesOf([client.users.updateMe.mutate(right)]), ['rate_limited'])
  const named = { body: { display_name: 'Another' }, token, headers: from(address) }
  const renamed = await bed.ask('PATCH', '/me', named)
  const counted = renamed.headers.get('ratelimit-limit')
  assert.equal([renamed.status, counted], [200, null], 'without a password it is not counted')
  const stranger = await creatorAt(bed, 'two@example.pk', '192.0.2.10')
  pass(MINUTE)
  const theirs = await tryBy(bed, stranger, address).destination('Fourth', PASSWORD)
  assert.is(theirs.status, 200, 'another account')
  const elsewhere = await tryBy(bed, token, '192.0.2.7').destination('Fourth', PASSWORD)
  assert.is(elsewhere.status, 200, 'another address')
})

it('refuses a token that is not valid, and counts its tries by address only', async ({ bed }) => {
  const attempt = (address: string) => tryBy(bed, 'x'.repeat(43), address).destination('T')
  for (let index = 0; index < AUTH; index += 1) assert.is((await attempt('192.0.2.1')).status, 401)
  isLimited(await attempt('192.0.2.1'), AUTH)
  assert.is((await attempt('192.0.2.2')).status, 401)
})

it('counts public routes of an address over REST and tRPC together', async ({ bed }) => {
  const headers = from('203.0.113.30')
  const client = batchOf(bed, '203.0.113.30', httpBatchLink)
  await Promise.all([client.offers.list.query({}), client.offers.list.query({ limit: 1 })])
  for (const [index, [path, status]] of Object.entries({
    '/offers': 200,
    '/openapi.json': 200,
    '/docs': 200,
    '/affiliate-links/none': 404,
    '/offers?limit=x': 400,
  }).entries()) {
    const answer = await bed.ask('GET', path, { headers })
    const left = answer.headers.get('ratelimit-remaining')
    assert.equal([answer.status, left], [status, String(PUBLIC - 3 - index)], path)
  }
  for (const path of ['/offers', '/openapi.json']) isLimited(await bed.ask('GET', path, { headers }), PUBLIC)
  isLimited(await bed.ask('GET', '/offers', { headers, token: 'x'.repeat(43) }), PUBLIC)
  assert.is((await logIn(bed, 'a@example.pk', '203.0.113.30')).status, 401, 'log-ins are counted apart')
  assert.is((await bed.ask('GET', '/me', { headers })).status, 401, 'what needs a token is not counted')
})

it('never counts visitors, webhooks and probes', async ({ bed }) => {
  const headers = from('203.0.113.40')
  for (let index = 0; index < 2 * PUBLIC; index += 1) {
    for (const [call, status] of Object.entries({
      'GET /go/none': 404,
      'POST /webhooks/store-sales': 401,
      'POST /webhooks/processor': 401,
      'GET /healthz': 200,
      'GET /readyz': 200,
    })) {
      const [method = '', path = ''] = call.split(' ')
      const answer = await bed.ask(method, path, { headers, ...(method === 'POST' && { body: {} }) })
      assert.equal([answer.status, answer.headers.get('ratelimit-limit')], [status, null], call)
    }
  }
})

it.run()

/** How a request of a client arrives through proxies, by TRUST_PROXY. Clients write what comes before their address. */
const FORWARDED: Record<string, ((client: number, index: number) => string)[]> = {
  1: [(client, index) => `198.51.100.${index}, 203.0.113.${client}`],
  2: [(client, index) => `198.51.100.${index}, 203.0.113.${client}, 10.0.0.2`],
  'loopback,10.0.0.0/8': [
    (client) => `203.0.113.${client}:51234`,
    (client) => `203.0.114.${client}:51234, 10.0.0.5:443`,
    (client) => `[2001:db8:0:${client}::7]:51234, [::ffff:10.0.0.5]:443`,
    (client) => `"[2001:db8:1:${client}::7]"`,
    (client) => `, 203.0.115.${client} ,, ::ffff:10.0.0.5, `,
  ],
}

for (const [proxies, forms] of Object.entries(FORWARDED)) {
  const settings = { RATE_LIMIT_AUTH: String(AUTH), TRUST_PROXY: proxies }
  const hops = webSuite(`rate limits with TRUST_PROXY=${proxies}`, 'sqlite', settings)

  hops('count each client alone, in every form in which proxies forward its address', async ({ bed }) => {
    for (const form of forms) {
      for (let index = 0; index < AUTH; index += 1)
        assert.is((await logIn(bed, `p${index}@example.pk`, form(1, index))).status, 401)
      isLimited(await logIn(bed, 'p@example.pk', form(1, AUTH)), AUTH)
      assert.is((await logIn(bed, 'p@example.pk', form(2, AUTH))).status, 401, form(2, AUTH))
    }
  })

  hops.run()
}

const off = webSuite('rate limits that are off', 'sqlite', { RATE_LIMIT_AUTH: '0', RATE_LIMIT_PUBLIC: '0' })

off('count nothing', async ({ bed }) => {
  for (let index = 0; index < 30; index += 1) {
    const { status, headers } = await bed.ask('GET', '/offers')
    assert.equal([status, headers.get('ratelimit-limit')], [200, null])
  }
})

off.run()

/** Small, since each guess takes the time of a hash. */
const FEW = 2

const locks = limitedSuite('rate limits of one account at many addresses', { RATE_LIMIT_AUTH: String(FEW) })

locks('keeps guesses from many addresses from locking the owner out where they log in', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  for (const email of [OWNER.email, 'unknown@example.pk']) {
    for (let index = 0; index < 10 * FEW; index += 1)
      assert.is((await logIn(bed, email, `198.51.100.${index}`)).status, 401)
    isLocked(await logIn(bed, email, '198.51.100.99'))
    pass(MINUTE)
  }
  isLocked(await logOwnerIn(bed, '198.51.100.98'))
  assert.is((await logOwnerIn(bed, '192.0.2.1')).status, 200, 'where the owner registered')
  const body = { ...OWNER, role: 'creator', display_name: 'V' }
  const taken = await bed.ask('POST', '/auth/register', { body, headers: from('198.51.100.96') })
  assert.is(taken.body.code, 'email_taken', 'registrations are counted by address')
  pass(15 * MINUTE)
  assert.is((await logOwnerIn(bed, '198.51.100.98')).status, 200)
})

locks('counts wrong passwords at the same moment one by one', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  const attempts = Array.from({ length: 12 * FEW }, (_, index) =>
    logIn(bed, OWNER.email, `198.51.100.${index}`),
  )
  const statuses = (await Promise.all(attempts)).map(({ status }) => status)
  assert.equal(statuses.sort(), [...Array(10 * FEW).fill(401), ...Array(2 * FEW).fill(429)])
})

locks.run()

const USER = 6
const users = limitedSuite('rate limits of accounts', { RATE_LIMIT_USER: String(USER) })

users('stop a flood of PATCH /me, whatever address and session it comes from', async ({ bed }) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const login = { email: 'one@example.pk', password: PASSWORD }
  const second = String((await bed.ask('POST', '/auth/login', { body: login })).body.token)
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      bed.ask('PATCH', '/me', {
        body: { display_name: `Name ${index}` },
        token: index % 2 ? token : second,
        headers: from(`192.0.2.${index}`),
      }),
    ),
  )
  assert.is(answers.filter(({ status }) => status === 200).length, USER)
  const refused = answers.filter(({ status }) => status !== 200)
  for (const answer of refused) isLimited(answer, USER)
  assert.is(refused[0]?.body.detail, 'At most 6 calls per minute from one account. Try again in 60 seconds.')
  isLimited(await bed.ask('GET', '/me', { token }), USER)
  const other = await creatorAt(bed, 'two@example.pk', '192.0.2.1')
  assert.is((await bed.ask('GET', '/me', { token: other })).status, 200, 'another account')
  assert.is((await bed.ask('GET', '/offers')).status, 200, 'without a token')
  pass(MINUTE)
  assert.is((await bed.ask('GET', '/me', { token })).status, 200)
})

users('count each call of a tRPC batch, REST, files and public routes with a token', async ({ bed }) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const links = [
    httpBatchLink({ url: `${bed.base}/trpc`, headers: { authorization: `Bearer ${token}` }, maxItems: 10 }),
  ]
  const client = createTRPCClient<AppRouter>({ links })
  const meTimes = (calls: number) => codesOf(Array.from({ length: calls }, () => client.users.me.query()))
  assert.equal([...new Set(await meTimes(2))], ['ok'])
  const listed = await bed.ask('GET', '/offers', { token })
  assert.is(listed.headers.get('ratelimit-remaining'), String(USER - 3))
  const file = await bed.ask('GET', `/jobs/${bed.platform.ids.next()}/file`, { token })
  assert.is(file.status, 404)
  assert.is(file.headers.get('ratelimit-remaining'), String(USER - 4))
  assert.equal([...new Set(await meTimes(3))], ['rate_limited'], 'none of them runs')
  isLimited(await bed.ask('GET', '/offers', { token }), USER)
  isLimited(await bed.ask('GET', `/jobs/${bed.platform.ids.next()}/file`, { token }), USER)
})

users('do not count tokens that are not valid', async ({ bed }) => {
  for (let index = 0; index < 2 * USER; index += 1) {
    const answer = await bed.ask('GET', '/me', { token: 'x'.repeat(43) })
    assert.is(answer.status, 401)
    assert.is(answer.headers.get('ratelimit-limit'), null)
  }
})

users.run()
