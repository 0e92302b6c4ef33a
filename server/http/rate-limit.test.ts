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
import { MINUTE } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { PASSWORD } from '../test/testkit/web-people.ts'
import type { AppRouter } from './router.ts'

const it = suite<{ bed: WebTestbed }>('rate limits')

const AUTH = 5
const PUBLIC = 7

/** Windows are counted by the process' own clock. */
const pass = (ms: number) => mock.timers.tick(ms)

/** Opens each test's service under a clock that stands still. */
function limited(it: Test<{ bed: WebTestbed }>, settings: Record<string, string>): void {
  it.before.each(async (world) => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-01T07:00:00Z') })
    world.bed = await openWebTestbed('sqlite', { ...settings, TRUST_PROXY: 'loopback' })
  })
  it.after.each(async ({ bed }) => {
    mock.timers.reset()
    await bed.close()
  })
}

limited(it, { RATE_LIMIT_AUTH: String(AUTH), RATE_LIMIT_PUBLIC: String(PUBLIC) })

/** The client sends at most ten calls in a request. */
function batchOf(bed: WebTestbed, address: string, link: typeof httpBatchLink | typeof httpBatchStreamLink) {
  const links = [link({ url: `${bed.base}/trpc`, headers: from(address), maxItems: 10 })]
  return createTRPCClient<AppRouter>({ links })
}

it('counts log-ins and registrations of one address together, for all accounts', async ({ bed }) => {
  for (let left = AUTH - 1; left >= 1; left -= 1) {
    const answer = await logIn(bed, `person${left}@example.pk`, '203.0.113.1')
    assert.is(answer.status, 401)
    assert.is(answer.headers.get('ratelimit-limit'), String(AUTH))
    assert.is(answer.headers.get('ratelimit-remaining'), String(left))
  }
  const body = {
    email: 'new@example.pk',
    password: 'a long passphrase',
    role: 'creator',
    display_name: 'New',
  }
  const registered = await bed.ask('POST', '/auth/register', { body, headers: from('203.0.113.1') })
  assert.is(registered.status, 201)
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
    const guess = (index: number) => ({ email: `p${index}@example.pk`, password: `guess ${index}` })
    const client = batchOf(bed, '203.0.113.7', link)
    const batch = await codesOf(
      Array.from({ length: AUTH + 1 }, (_, i) => client.auth.login.mutate(guess(i))),
    )
    assert.equal([...new Set(batch)], ['rate_limited'], 'none of them runs')
    isLimited(await logIn(bed, 'p@example.pk', '203.0.113.7'), AUTH)

    const spread = batchOf(bed, '203.0.113.8', link)
    const same = Array.from({ length: AUTH }, () =>
      spread.auth.login.mutate({ email: 'victim@example.pk', password: 'guess' }),
    )
    assert.equal([...new Set(await codesOf(same))], ['invalid_credentials'])
    assert.is((await logIn(bed, 'victim@example.pk', '203.0.113.9')).status, 401)
    pass(MINUTE)
    isLocked(await logIn(bed, 'victim@example.pk', '203.0.113.8'))
  })
}

it('counts tRPC calls whose path is encoded twice, and answers with status and headers', async ({ bed }) => {
  const call = (path: string, headers = from('203.0.113.20')) =>
    fetch(`${bed.base}/trpc/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        0: { email: 'a@example.pk', password: 'x' },
        1: { email: 'b@example.pk', password: 'x' },
      }),
    })
  for (let index = 0; index < AUTH + 2; index += 1)
    await (await call('auth%252Elogin,auth.login?batch=1')).text()
  const answer = await call('auth.login?batch=1')
  assert.is(answer.status, 429)
  assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  assert.is(answer.headers.get('ratelimit-remaining'), '0')
  const [first] = (await answer.json()) as {
    error: { code: number; data: { code: string; problem: { code: string; request_id: string } } }
  }[]
  assert.equal([first?.error.code, first?.error.data.code], [-32029, 'TOO_MANY_REQUESTS'])
  assert.is(first?.error.data.problem.code, 'rate_limited')
  assert.is(first?.error.data.problem.request_id, answer.headers.get('x-request-id'))
})

const guessedDestination = (title: string, current_password = 'a guess') => ({
  payout_destination: { iban: 'PK36SCBL0000001123456702', account_title: title },
  current_password,
})

it('counts every try of the current password: an address at any accounts', async ({ bed }) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const other = await creatorAt(bed, 'two@example.pk', '192.0.2.2')
  const headers = from('192.0.2.50')
  const change = { current_password: 'a guess', new_password: 'another long passphrase' }
  for (let index = 0; index < AUTH; index += 1) {
    const [caller, body] = [index % 2 ? token : other, guessedDestination(`T ${index}`)]
    const answer =
      index < 2
        ? await bed.ask('POST', '/auth/password', { body: change, token: caller, headers })
        : await bed.ask('PATCH', '/me', { body, token: caller, headers })
    assert.not.equal(answer.status, 429)
    assert.is(answer.headers.get('ratelimit-remaining'), String(AUTH - 1 - index))
  }
  const body = guessedDestination('T', PASSWORD)
  isLimited(await bed.ask('PATCH', '/me', { body, token, headers }), AUTH)
  isLimited(await bed.ask('POST', '/auth/password', { body: change, token, headers }), AUTH)
  isLimited(await logIn(bed, 'three@example.pk', '192.0.2.50'), AUTH)
  assert.is((await bed.ask('PATCH', '/me', { body, token, headers: from('192.0.2.51') })).status, 200)
})

it('counts every try of the current password: an account in all sessions and routes', async ({ bed }) => {
  const address = '203.0.113.60'
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const login = { email: 'one@example.pk', password: PASSWORD }
  const again = await bed.ask('POST', '/auth/login', { body: login, headers: from('192.0.2.2') })
  const second = String(again.body.token)
  const first = guessedDestination('First', PASSWORD)
  assert.is((await bed.ask('PATCH', '/me', { body: first, token, headers: from(address) })).status, 200)
  pass(MINUTE)
  const links = [
    httpBatchLink({
      url: `${bed.base}/trpc`,
      headers: { ...from(address), authorization: `Bearer ${second}` },
    }),
  ]
  const client = createTRPCClient<AppRouter>({ links })
  const change = { current_password: 'a guess', new_password: 'another long passphrase' }
  assert.equal(
    await codesOf([
      client.users.updateMe.mutate(guessedDestination('Second')),
      client.auth.changePassword.mutate(change),
    ]),
    ['invalid_credentials', 'invalid_credentials'],
  )
  const headers = from(address)
  const third = await bed.ask('PATCH', '/me', { body: guessedDestination('Third'), token, headers })
  assert.is(third.body.code, 'invalid_credentials')
  const request = { body: change, token: second, headers }
  assert.is((await bed.ask('POST', '/auth/password', request)).body.code, 'invalid_credentials')
  assert.is((await logIn(bed, 'one@example.pk', address)).body.code, 'invalid_credentials')

  pass(MINUTE)
  const right = guessedDestination('Fourth', PASSWORD)
  isLocked(await bed.ask('PATCH', '/me', { body: right, token, headers }))
  isLocked(await bed.ask('POST', '/auth/password', request))
  isLocked(await bed.ask('POST', '/auth/login', { body: login, headers }))
  assert.equal(await codesOf([client.users.updateMe.mutate(right)]), ['rate_limited'])
  const named = { body: { display_name: 'Another' }, token, headers }
  const renamed = await bed.ask('PATCH', '/me', named)
  assert.is(renamed.status, 200, 'without a password it is not counted')
  assert.is(renamed.headers.get('ratelimit-limit'), null)
  const stranger = await creatorAt(bed, 'two@example.pk', '192.0.2.10')
  pass(MINUTE)
  const theirs = await bed.ask('PATCH', '/me', { body: right, token: stranger, headers })
  assert.is(theirs.status, 200, 'another account')
  const elsewhere = { body: right, token, headers: from('192.0.2.7') }
  assert.is((await bed.ask('PATCH', '/me', elsewhere)).status, 200, 'another address')
})

it('refuses a token that is not valid, and counts its tries by address only', async ({ bed }) => {
  const request = { body: guessedDestination('T'), token: 'x'.repeat(43), headers: from('192.0.2.1') }
  for (let index = 0; index < AUTH; index += 1)
    assert.is((await bed.ask('PATCH', '/me', request)).status, 401)
  isLimited(await bed.ask('PATCH', '/me', request), AUTH)
  assert.is((await bed.ask('PATCH', '/me', { ...request, headers: from('192.0.2.2') })).status, 401)
})

it('counts public routes of an address over REST and tRPC together', async ({ bed }) => {
  const headers = from('203.0.113.30')
  const client = batchOf(bed, '203.0.113.30', httpBatchLink)
  await Promise.all([client.offers.list.query({}), client.offers.list.query({ limit: 1 })])
  assert.is(
    (await bed.ask('GET', '/offers', { headers })).headers.get('ratelimit-remaining'),
    String(PUBLIC - 3),
  )
  assert.is((await bed.ask('GET', '/openapi.json', { headers })).status, 200)
  assert.is((await fetch(`${bed.base}/docs`, { headers })).status, 200)
  assert.is((await bed.ask('GET', '/affiliate-links/none', { headers })).status, 404)
  assert.is((await bed.ask('GET', '/offers?limit=x', { headers })).status, 400)
  isLimited(await bed.ask('GET', '/offers', { headers }), PUBLIC)
  isLimited(await bed.ask('GET', '/openapi.json', { headers }), PUBLIC)
  isLimited(await bed.ask('GET', '/offers', { headers, token: 'x'.repeat(43) }), PUBLIC)
  assert.is((await logIn(bed, 'a@example.pk', '203.0.113.30')).status, 401, 'log-ins are counted apart')
  assert.is((await bed.ask('GET', '/me', { headers })).status, 401, 'what needs a token is not counted')
})

it('never counts visitors, webhooks and probes', async ({ bed }) => {
  const headers = from('203.0.113.40')
  for (let index = 0; index < 2 * PUBLIC; index += 1) {
    assert.is((await bed.ask('GET', '/go/none', { headers })).status, 404)
    assert.is((await bed.ask('POST', '/webhooks/store-sales', { headers, body: {} })).status, 401)
    assert.is((await bed.ask('POST', '/webhooks/processor', { headers, body: {} })).status, 401)
    assert.is((await bed.ask('GET', '/healthz', { headers })).status, 200)
    const ready = await bed.ask('GET', '/readyz', { headers })
    assert.is(ready.status, 200)
    assert.is(ready.headers.get('ratelimit-limit'), null)
  }
})

it.run()

const hops = suite('rate limits behind a number of proxies')

hops('count the address that the outermost trusted proxy saw, not what the client wrote', async () => {
  for (const [setting, client] of [
    ['1', (address: string, index: number) => `198.51.100.${index}, ${address}`],
    ['2', (address: string, index: number) => `198.51.100.${index}, ${address}, 10.0.0.2`],
  ] as const) {
    const bed = await openWebTestbed('sqlite', { RATE_LIMIT_AUTH: String(AUTH), TRUST_PROXY: setting })
    try {
      const attempt = (address: string, index: number) =>
        logIn(bed, `p${index}@example.pk`, client(address, index))
      for (let index = 0; index < AUTH; index += 1) {
        assert.is((await attempt('203.0.113.1', index)).status, 401)
      }
      isLimited(await attempt('203.0.113.1', AUTH), AUTH)
      assert.is((await attempt('203.0.113.2', AUTH)).status, 401)
    } finally {
      await bed.close()
    }
  }
})

hops('count each client alone, in every form in which proxies forward it', async () => {
  const proxies = 'loopback,10.0.0.0/8'
  const bed = await openWebTestbed('sqlite', { RATE_LIMIT_AUTH: String(AUTH), TRUST_PROXY: proxies })
  const forms = [
    (last: number) => `203.0.113.${last}:51234`,
    (last: number) => `203.0.114.${last}:51234, 10.0.0.5:443`,
    (last: number) => `[2001:db8:0:${last}::7]:51234, [::ffff:10.0.0.5]:443`,
    (last: number) => `"[2001:db8:1:${last}::7]"`,
    (last: number) => `, 203.0.115.${last} ,, ::ffff:10.0.0.5, `,
  ]
  try {
    for (const form of forms) {
      for (let index = 0; index < AUTH; index += 1) {
        assert.is((await logIn(bed, `p${index}@example.pk`, form(1))).status, 401)
      }
      isLimited(await logIn(bed, 'p@example.pk', form(1)), AUTH)
      assert.is((await logIn(bed, 'p@example.pk', form(2))).status, 401, form(2))
    }
  } finally {
    await bed.close()
  }
})

hops.run()

const off = suite('rate limits that are off')

off('count nothing', async () => {
  const bed = await openWebTestbed('sqlite', { RATE_LIMIT_AUTH: '0', RATE_LIMIT_PUBLIC: '0' })
  try {
    for (let index = 0; index < 30; index += 1) {
      const answer = await bed.ask('GET', '/offers')
      assert.is(answer.status, 200)
      assert.is(answer.headers.get('ratelimit-limit'), null)
    }
  } finally {
    await bed.close()
  }
})

off.run()

/** Small, since each guess takes the time of a hash. */
const FEW = 2

const locks = suite<{ bed: WebTestbed }>('rate limits of one account at many addresses')

limited(locks, { RATE_LIMIT_AUTH: String(FEW) })

locks('keeps guesses from many addresses from locking the owner out where they log in', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  for (let index = 0; index < 10 * FEW; index += 1) {
    assert.is((await logIn(bed, OWNER.email, `198.51.100.${index}`)).status, 401)
  }
  isLocked(await logIn(bed, OWNER.email, '198.51.100.99'))
  isLocked(await logOwnerIn(bed, '198.51.100.98'))
  assert.is((await logOwnerIn(bed, '192.0.2.1')).status, 200, 'where the owner registered')
  assert.is((await logIn(bed, 'another-user@example.pk', '198.51.100.97')).status, 401)
  const body = { ...OWNER, role: 'creator', display_name: 'V' }
  const taken = await bed.ask('POST', '/auth/register', { body, headers: from('198.51.100.96') })
  assert.is(taken.body.code, 'email_taken', 'registrations are counted by address')
  pass(15 * MINUTE)
  assert.is((await logOwnerIn(bed, '198.51.100.98')).status, 200)
})

locks('locks an e-mail without an account alike', async ({ bed }) => {
  for (let index = 0; index < 10 * FEW; index += 1) {
    assert.is((await logIn(bed, 'unknown@example.pk', `198.51.100.${index}`)).status, 401)
  }
  isLocked(await logIn(bed, 'unknown@example.pk', '198.51.100.99'))
})

locks('counts wrong passwords at the same moment one by one', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  const attempts = Array.from({ length: 12 * FEW }, (_, index) =>
    logIn(bed, OWNER.email, `198.51.100.${index}`),
  )
  const statuses = (await Promise.all(attempts)).map(({ status }) => status)
  assert.is(statuses.filter((status) => status === 401).length, 10 * FEW)
  assert.is(statuses.filter((status) => status === 429).length, 2 * FEW)
})

locks.run()

const users = suite<{ bed: WebTestbed }>('rate limits of accounts')

const USER = 6

limited(users, { RATE_LIMIT_USER: String(USER) })

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
