import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PRODUCTION } from '../../../cli/test/run-affiliate.ts'
import { createClient, problemIn } from '../../../shared/client/index.ts'
import { createAdmin, suspendUser } from '../../users/users.service.ts'
import { codeOf } from '../testkit/authenticator.ts'
import { eventually } from '../testkit/eventually.ts'
import { drainExports } from '../testkit/export-world.ts'
import { addApiKey } from '../testkit/people.ts'
import { DAY, HOUR } from '../testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../testkit/web.ts'
import { newEmail, PASSWORD } from '../testkit/web-people.ts'

const PAGE = { 'x-session': 'cookie' }

/** A browser's part: what the last answer set is sent with each call, wanted or not. */
function openBrowser({ base }: WebTestbed) {
  const browser = { cookie: '', attributes: '', answers: [] as Response[] }
  const fetchWithCookie: typeof fetch = async (address, init) => {
    const headers = new Headers(init?.headers)
    if (browser.cookie !== '') headers.set('cookie', browser.cookie)
    const answer = await fetch(address, { ...init, headers })
    browser.answers.push(answer)
    for (const line of answer.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      browser.cookie = attributes.includes('Max-Age=0') ? '' : pair
      browser.attributes = attributes.join('; ')
    }
    return answer
  }
  const client = (session?: 'cookie', token?: string) =>
    createClient({ url: base, session, token, fetch: fetchWithCookie, retries: 0 })
  return { browser, page: client('cookie'), client, fetch: fetchWithCookie }
}

const newCreator = () => {
  return { email: newEmail(), password: PASSWORD, role: 'creator' as const, display_name: 'Sana' }
}
const codeFrom = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error) => problemIn(error)?.code,
  )

const folder = mkdtempSync(join(tmpdir(), 'affiliate-cookie-'))
const it = suite<{ bed: WebTestbed }>('a session in a cookie')
it.before(async (world) => {
  world.bed = await openWebTestbed('sqlite', { CORS_ORIGINS: 'https://app.example.com', DATA_DIR: folder })
})
it.after(async ({ bed }) => {
  await bed.close()
  rmSync(folder, { recursive: true })
})

it('is opened by registering, used by each call, and closed by logging out', async ({ bed }) => {
  const { browser, page } = openBrowser(bed)
  const account = newCreator()
  const session = await page.auth.register.mutate(account)
  assert.is(session.token, '')
  assert.match(browser.cookie, /^session=[\w-]{43}$/)
  assert.is(browser.attributes, `Path=/; Max-Age=${(30 * DAY) / 1000}; HttpOnly; SameSite=Strict`)
  assert.is(browser.answers.at(-1)?.headers.get('cache-control'), 'no-store')
  assert.is((await page.users.me.query()).email, account.email)
  assert.is((await page.auth.listSessions.query()).items[0]?.current, true)
  assert.is((await page.users.updateMe.mutate({ display_name: 'Sana K' })).display_name, 'Sana K')
  const kept = browser.cookie
  await page.auth.logout.mutate()
  assert.is(browser.cookie, '')
  browser.cookie = kept
  assert.is(await codeFrom(page.users.me.query()), 'unauthenticated')
})

it('counts for nothing without the header, over REST, and beside an Authorization', async ({ bed }) => {
  const { browser, page, client, fetch } = openBrowser(bed)
  const account = newCreator()
  await page.auth.register.mutate(account)
  const mine = browser.cookie
  assert.is(await codeFrom(client().users.me.query()), 'unauthenticated')
  const beside = { ...PAGE, authorization: `Bearer ${'x'.repeat(43)}` }
  for (const headers of [undefined, { 'x-session': 'Cookie' }, { 'x-session': '' }, beside])
    assert.is((await fetch(`${bed.base}/trpc/users.me`, headers && { headers })).status, 401)
  assert.is((await fetch(`${bed.base}/me`, { headers: PAGE })).status, 401)
  assert.is((await fetch(`${bed.base}/auth/logout`, { method: 'POST', headers: PAGE })).status, 401)
  assert.is(await codeFrom(client('cookie', 'x'.repeat(43)).users.me.query()), 'unauthenticated')

  const { email, password } = account
  const asBearer = await client().auth.login.mutate({ email, password })
  assert.match(asBearer.token, /^[\w-]{43}$/)
  const both = await client('cookie', asBearer.token).auth.login.mutate({ email, password })
  assert.match(both.token, /^[\w-]{43}$/)
  const { body } = await bed.ask('POST', '/auth/login', { body: { email, password }, headers: PAGE })
  assert.match(String(body.token), /^[\w-]{43}$/)
  assert.is(browser.cookie, mine)
  assert.is((await client(undefined, asBearer.token).users.me.query()).email, email)
  await client(undefined, asBearer.token).auth.logout.mutate()
  assert.is((await page.users.me.query()).email, email)
})

it('is never an API key', async ({ bed }) => {
  const { browser, page, client } = openBrowser(bed)
  const { user } = await page.auth.register.mutate(newCreator())
  const { key } = await addApiKey(bed.platform, user.id, 'write')
  assert.is((await client(undefined, key).users.me.query()).id, user.id)
  for (const value of [key, key.slice(4), `"${key}"`]) {
    browser.cookie = `session=${value}`
    assert.is(await codeFrom(page.users.me.query()), 'unauthenticated')
  }
})

it('is found among other cookies, under its own name only', async ({ bed }) => {
  const { browser, page } = openBrowser(bed)
  await page.auth.register.mutate(newCreator())
  const mine = browser.cookie
  for (const [cookie, code] of [
    [`theme=dark; ${mine}; lang=ur`, 'ok'],
    [`old_${mine}`, 'unauthenticated'],
    [`__Host-${mine}`, 'unauthenticated'],
    [`${mine}x`, 'unauthenticated'],
    ['session=', 'unauthenticated'],
  ] as const) {
    browser.cookie = cookie
    assert.is(await codeFrom(page.users.me.query()), code, cookie)
  }
})

it('is one for all tabs: a second log-in takes its place and ends it', async ({ bed }) => {
  const { browser, page } = openBrowser(bed)
  const first = newCreator()
  await page.auth.register.mutate(first)
  const former = browser.cookie
  const heard: unknown[] = []
  const stream = page.live.changes.subscribe(
    {},
    { onData: ({ data }) => heard.push(data.kind), onError: (error) => heard.push(problemIn(error)?.code) },
  )
  try {
    await eventually(() => heard[0])
    const second = newCreator()
    await page.auth.register.mutate(second)
    assert.is((await page.users.me.query()).email, second.email)
    assert.is.not(browser.cookie, former)
    browser.cookie = former
    assert.is(await codeFrom(page.users.me.query()), 'unauthenticated')
    await eventually(() => heard[1])
    assert.equal(heard, ['start', 'unauthenticated'])
  } finally {
    // Otherwise it connects again without end, and the process does not end.
    stream.unsubscribe()
  }
  const { email, password } = first
  const wrong = page.auth.login.mutate({ email, password: 'another password' })
  assert.is(await codeFrom(wrong), 'invalid_credentials')
  assert.is(browser.cookie, former, 'a refused log-in leaves the cookie')
  await page.auth.login.mutate({ email, password })
  assert.is((await page.users.me.query()).email, email)
  assert.is((await page.auth.listSessions.query()).items.length, 1)
})

it('ends with a suspension and at its time', async ({ bed }) => {
  const { page } = openBrowser(bed)
  const { user } = await page.auth.register.mutate(newCreator())
  await suspendUser(bed.platform, { userId: user.id, actor: 'operator', reason: 'fraud' })
  assert.is(await codeFrom(page.users.me.query()), 'unauthenticated')
  const other = openBrowser(bed).page
  await other.auth.register.mutate(newCreator())
  bed.clock.pass(30 * DAY)
  assert.is(await codeFrom(other.users.me.query()), 'unauthenticated')
})

it('refuses a streamed batch, whose headers come before the log-in', async ({ bed }) => {
  const { fetch } = openBrowser(bed)
  const answer = await fetch(`${bed.base}/trpc/auth.register?batch=1`, {
    method: 'POST',
    headers: { ...PAGE, 'content-type': 'application/json', 'trpc-accept': 'application/jsonl' },
    body: JSON.stringify({ 0: newCreator() }),
  })
  assert.match(await answer.text(), /X-Session/)
  assert.equal(answer.headers.getSetCookie(), [])
})

it('is out of reach for pages of other origins', async ({ bed }) => {
  const asked = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-session' }
  const headers = { origin: 'https://app.example.com', ...asked }
  const preflight = await bed.ask('OPTIONS', '/trpc/users.me', { headers })
  assert.not.match(preflight.headers.get('access-control-allow-headers') ?? '', /x-session|\*/i)
})

it('downloads the file of an export', async ({ bed }) => {
  const { page, fetch } = openBrowser(bed)
  await page.auth.register.mutate(newCreator())
  const { id } = await page.jobs.startExport.mutate({ resource: 'sales', format: 'csv' })
  await drainExports(bed.platform)
  const address = `${bed.base}/jobs/${id}/file`
  assert.is((await fetch(address)).status, 401)
  assert.is((await fetch(address, { headers: PAGE })).status, 200)
})
it.run()

const production = suite<{ bed: WebTestbed }>('a session in a cookie in production')
production.before(async (world) => {
  world.bed = await openWebTestbed('sqlite', PRODUCTION)
})
production.after(({ bed }) => bed.close())

production(
  'has a name that only this host sets; an admin first sets up the second factor',
  async ({ bed }) => {
    const { browser, page } = openBrowser(bed)
    const { email } = await createAdmin(bed.platform, newEmail(), PASSWORD, 'Admin')
    const session = await page.auth.login.mutate({ email, password: PASSWORD })
    assert.equal([session.token, session.second_factor_setup_required], ['', true])
    assert.match(browser.cookie, /^__Host-session=[\w-]{43}$/)
    assert.is(browser.attributes, `Path=/; Max-Age=${(12 * HOUR) / 1000}; HttpOnly; SameSite=Strict; Secure`)
    assert.is(await codeFrom(page.admin.listFlagged.query()), 'forbidden')
    const { secret } = await page.auth.startTotp.mutate()
    await page.auth.confirmTotp.mutate({ code: codeOf(secret, bed.clock) })
    assert.is(await codeFrom(page.admin.listFlagged.query()), 'ok')
    bed.clock.pass(12 * HOUR)
    assert.is(await codeFrom(page.admin.listFlagged.query()), 'unauthenticated')
  },
)
production.run()
