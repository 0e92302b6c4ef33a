import { createTRPCClient, httpBatchLink, httpBatchStreamLink, TRPCClientError } from '@trpc/client'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MINUTE } from '../proof/testbed/testbed.ts'
import { openWebTestbed, type WebAnswer, type WebTestbed } from '../proof/testbed/web.ts'
import { MAX_COUNTERS, rateLimitStore } from './rate-limit-store.ts'
import type { AppRouter } from './router.ts'

const it = suite<{ bed: WebTestbed }>('rate limits')

const AUTH = 5
const PUBLIC = 7

it.before.each(async (world) => {
  const settings = {
    RATE_LIMIT_AUTH: String(AUTH),
    RATE_LIMIT_PUBLIC: String(PUBLIC),
    TRUST_PROXY: 'loopback',
  }
  world.bed = await openWebTestbed('sqlite', settings)
})
it.after.each(({ bed }) => bed.close())

const from = (address: string) => ({ 'x-forwarded-for': address })

function logIn(bed: WebTestbed, email: string, address: string): Promise<WebAnswer> {
  const body = { email, password: 'not the password' }
  return bed.ask('POST', '/auth/login', { body, headers: from(address) })
}

function isLimited(answer: WebAnswer, limit: number): void {
  assert.is(answer.status, 429, JSON.stringify(answer.body))
  assert.is(answer.headers.get('content-type'), 'application/problem+json')
  assert.is(answer.body.code, 'rate_limited')
  assert.is(answer.body.status, 429)
  assert.is(answer.body.request_id, answer.headers.get('x-request-id'))
  assert.is(answer.headers.get('ratelimit-limit'), String(limit))
  assert.is(answer.headers.get('ratelimit-remaining'), '0')
  assert.is(answer.headers.get('retry-after'), answer.headers.get('ratelimit-reset'))
  const wait = Number(answer.headers.get('retry-after'))
  assert.ok(wait >= 1 && wait <= 60, String(wait))
}

/** The client sends at most ten calls in a request. */
function batchOf(bed: WebTestbed, address: string, link: typeof httpBatchLink | typeof httpBatchStreamLink) {
  const links = [link({ url: `${bed.base}/trpc`, headers: from(address), maxItems: 10 })]
  return createTRPCClient<AppRouter>({ links })
}

async function codesOf(calls: readonly Promise<unknown>[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(calls)
  return outcomes.map((outcome) => {
    if (outcome.status === 'fulfilled') return 'ok'
    assert.instance(outcome.reason, TRPCClientError)
    return (outcome.reason as TRPCClientError<AppRouter>).data?.problem.code ?? 'none'
  })
}

it('counts log-ins and registrations of one address together, whoever they are for', async ({ bed }) => {
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
  bed.clock.pass(MINUTE)
  assert.is((await logIn(bed, 'other@example.pk', '203.0.113.1')).status, 401, 'a minute later')
})

it('counts log-ins for one account from wherever they come, and however its e-mail is written', async ({
  bed,
}) => {
  const spellings = ['victim@example.pk', ' Victim@Example.pk ', 'VICTIM@EXAMPLE.PK']
  for (let index = 0; index < AUTH; index += 1) {
    const answer = await logIn(bed, spellings[index % spellings.length] as string, `198.51.100.${index}`)
    assert.is(answer.status, 401)
  }
  isLimited(await logIn(bed, 'victim@example.pk', '198.51.100.99'), AUTH)
  const body = {
    email: 'victim@example.pk',
    password: 'a long passphrase',
    role: 'creator',
    display_name: 'V',
  }
  isLimited(await bed.ask('POST', '/auth/register', { body, headers: from('198.51.100.98') }), AUTH)
  assert.is((await logIn(bed, 'somebody-else@example.pk', '198.51.100.97')).status, 401)
})

it('does not let an address that is stopped use up the tries of others', async ({ bed }) => {
  for (let index = 0; index < 3 * AUTH; index += 1) await logIn(bed, `p${index}@example.pk`, '203.0.113.1')
  for (let index = 0; index < 3 * AUTH; index += 1) await logIn(bed, 'victim@example.pk', '203.0.113.1')
  assert.is((await logIn(bed, 'victim@example.pk', '203.0.113.2')).status, 401)
})

it('takes a customer with a whole IPv6 network for one address', async ({ bed }) => {
  for (let index = 0; index < AUTH; index += 1)
    await logIn(bed, `p${index}@example.pk`, `2001:db8:1:1::${index}`)
  isLimited(await logIn(bed, 'p@example.pk', '2001:db8:1:1:ffff::1'), AUTH)
  assert.is((await logIn(bed, 'p@example.pk', '2001:db8:1:2::1')).status, 401)
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
    isLimited(await logIn(bed, 'victim@example.pk', '203.0.113.9'), AUTH)
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

const PASSPHRASE = 'a long passphrase'

async function creatorAt(bed: WebTestbed, email: string, address: string): Promise<string> {
  const body = { email, password: PASSPHRASE, role: 'creator', display_name: 'C' }
  const registered = await bed.ask('POST', '/auth/register', { body, headers: from(address) })
  assert.is(registered.status, 201, JSON.stringify(registered.body))
  return String(registered.body.token)
}

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
  const body = guessedDestination('T', PASSPHRASE)
  isLimited(await bed.ask('PATCH', '/me', { body, token, headers }), AUTH)
  isLimited(await bed.ask('POST', '/auth/password', { body: change, token, headers }), AUTH)
  isLimited(await logIn(bed, 'three@example.pk', '192.0.2.50'), AUTH)
  assert.is((await bed.ask('PATCH', '/me', { body, token, headers: from('192.0.2.51') })).status, 200)
})

it('counts every try of the current password: an account from any addresses and sessions', async ({
  bed,
}) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const login = { email: 'one@example.pk', password: PASSPHRASE }
  const again = await bed.ask('POST', '/auth/login', { body: login, headers: from('192.0.2.2') })
  const second = String(again.body.token)
  const first = guessedDestination('First', PASSPHRASE)
  assert.is((await bed.ask('PATCH', '/me', { body: first, token, headers: from('192.0.2.3') })).status, 200)
  const overTrpc = (session: string, address: string) =>
    createTRPCClient<AppRouter>({
      links: [
        httpBatchLink({
          url: `${bed.base}/trpc`,
          headers: { ...from(address), authorization: `Bearer ${session}` },
        }),
      ],
    })
  const change = { current_password: 'a guess', new_password: 'another long passphrase' }
  const client = overTrpc(second, '192.0.2.4')
  assert.equal(
    await codesOf([
      client.users.updateMe.mutate(guessedDestination('Second')),
      client.auth.changePassword.mutate(change),
    ]),
    ['invalid_credentials', 'invalid_credentials'],
  )
  const third = await bed.ask('PATCH', '/me', {
    body: guessedDestination('Third'),
    token,
    headers: from('192.0.2.5'),
  })
  assert.is(third.body.code, 'invalid_credentials')
  const request = { body: change, token: second, headers: from('192.0.2.6') }
  assert.is((await bed.ask('POST', '/auth/password', request)).body.code, 'invalid_credentials')

  const right = guessedDestination('Fourth', PASSPHRASE)
  isLimited(await bed.ask('PATCH', '/me', { body: right, token, headers: from('192.0.2.7') }), AUTH)
  isLimited(await bed.ask('POST', '/auth/password', { ...request, headers: from('192.0.2.8') }), AUTH)
  const late = overTrpc(second, '192.0.2.9')
  assert.equal(await codesOf([late.users.updateMe.mutate(right)]), ['rate_limited'])
  const named = { body: { display_name: 'Another' }, token, headers: from('192.0.2.7') }
  const renamed = await bed.ask('PATCH', '/me', named)
  assert.is(renamed.status, 200, 'without a password it is not counted')
  assert.is(renamed.headers.get('ratelimit-limit'), null)
  const stranger = await creatorAt(bed, 'two@example.pk', '192.0.2.10')
  const theirs = await bed.ask('PATCH', '/me', {
    body: right,
    token: stranger,
    headers: from('192.0.2.11'),
  })
  assert.is(theirs.status, 200, 'another account')
  bed.clock.pass(MINUTE)
  assert.is((await bed.ask('PATCH', '/me', { body: right, token, headers: from('192.0.2.7') })).status, 200)
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

off('keep a bounded number of counters, the latest used', () => {
  const Store = rateLimitStore({ now: () => 0 })
  const store = new Store({}).child({ path: '/', prefix: '', method: 'GET', url: '/', handler: () => {} })
  const count = (key: string) => {
    let current = 0
    store.incr(key, (_error, result) => (current = result?.current ?? 0), MINUTE, 1)
    return current
  }
  count('forgotten')
  count('kept')
  for (let index = 0; index < MAX_COUNTERS - 1; index += 1) {
    count(`address ${index}`)
    if (index === 100) assert.is(count('kept'), 2)
  }
  assert.is(count('kept'), 3)
  assert.is(count('forgotten'), 1)
})

off.run()
