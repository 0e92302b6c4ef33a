import { mock } from 'node:test'
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { suite } from 'uvu'
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
  PASSPHRASE,
  registerOwner,
} from '../test/testkit/limited-calls.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import type { AppRouter } from './router.ts'

/** Windows are counted by the process' own clock. */
const pass = (ms: number) => mock.timers.tick(ms)

/** Small, since each guess takes the time of a hash. */
const FEW = 2

const locks = suite<{ bed: WebTestbed }>('rate limits of one account at many addresses')

locks.before.each(async (world) => {
  mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-01T07:00:00Z') })
  world.bed = await openWebTestbed('sqlite', { RATE_LIMIT_AUTH: String(FEW), TRUST_PROXY: 'loopback' })
})
locks.after.each(async ({ bed }) => {
  mock.timers.reset()
  await bed.close()
})

locks('keeps guesses from many addresses from locking the owner out where they log in', async ({ bed }) => {
  await registerOwner(bed, '192.0.2.1')
  for (let index = 0; index < 10 * FEW; index += 1) {
    assert.is((await logIn(bed, OWNER.email, `198.51.100.${index}`)).status, 401)
  }
  isLocked(await logIn(bed, OWNER.email, '198.51.100.99'))
  isLocked(await logOwnerIn(bed, '198.51.100.98'))
  assert.is((await logOwnerIn(bed, '192.0.2.1')).status, 200, 'where the owner registered')
  assert.is((await logIn(bed, 'somebody-else@example.pk', '198.51.100.97')).status, 401)
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

users.before.each(async (world) => {
  mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-01T07:00:00Z') })
  world.bed = await openWebTestbed('sqlite', { RATE_LIMIT_USER: String(USER), TRUST_PROXY: 'loopback' })
})
users.after.each(async ({ bed }) => {
  mock.timers.reset()
  await bed.close()
})

users('stop a flood of PATCH /me, whatever address and session it comes from', async ({ bed }) => {
  const token = await creatorAt(bed, 'one@example.pk', '192.0.2.1')
  const login = { email: 'one@example.pk', password: PASSPHRASE }
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

users(
  'count each call of a tRPC batch, REST, files and public routes with a token together',
  async ({ bed }) => {
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
  },
)

users('do not count tokens that are not valid', async ({ bed }) => {
  for (let index = 0; index < 2 * USER; index += 1) {
    const answer = await bed.ask('GET', '/me', { token: 'x'.repeat(43) })
    assert.is(answer.status, 401)
    assert.is(answer.headers.get('ratelimit-limit'), null)
  }
})

users.run()
