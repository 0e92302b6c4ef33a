import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { insertRows, updateRows } from '../platform/database/protected-rows.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { logIn as logInOver, register as registerFrom } from '../test/testkit/web-people.ts'

interface Item {
  id: string
  created_at: string
  expires_at: string
  last_used_at: string | null
  address_prefix: string | null
  agent: string | null
  current: boolean
}

for (const dialect of proofDialects()) {
  const it = webSuite(`sessions on ${dialect}`, dialect, { TRUST_PROXY: 'loopback' })

  const origin = { 'user-agent': 'first', 'x-forwarded-for': '203.0.113.9' }
  const register = (bed: WebTestbed) => registerFrom(bed, 'creator', undefined, origin)
  const logIn = async (bed: WebTestbed, email: string, headers: Record<string, string> = {}) =>
    String((await logInOver(bed, email, {}, headers)).body.token)
  const list = async (bed: WebTestbed, token: string, query = '') => {
    const answer = await bed.ask('GET', `/auth/sessions${query}`, { token })
    assert.is(answer.status, 200, JSON.stringify(answer.body))
    return answer.body as { items: Item[]; next_cursor: string | null }
  }
  const isIn = async (bed: WebTestbed, token: string) =>
    (await bed.ask('GET', '/me', { token })).status === 200

  it('are listed newest first, with the network and program that logged in', async ({ bed }) => {
    const { email, token } = await register(bed)
    const now = new Date(bed.clock.now()).toISOString()
    await logIn(bed, email, {
      'user-agent': `  Evil\u001b[31m\tBrowser ${'x'.repeat(300)}`.replace('\u001b', '\u009b'),
      'x-forwarded-for': '2001:db8:1:2::7',
    })
    const { items, next_cursor } = await list(bed, token)
    assert.is(next_cursor, null)
    assert.equal(pluck(items, 'current'), [false, true])
    const [second, first] = items
    assert.equal(first, {
      ...{ id: first?.id, created_at: now, last_used_at: now, current: true },
      expires_at: new Date(bed.clock.now() + 30 * DAY).toISOString(),
      ...{ address_prefix: '203.0.113.0/24', agent: 'first' },
    })
    assert.equal([second?.address_prefix, second?.agent?.length], ['2001:db8:1::/48', 120])
    assert.match(second?.agent ?? '', /^Evil \[31m Browser x+$/)
  })

  it('come in pages', async ({ bed }) => {
    const { email, token } = await register(bed)
    await logIn(bed, email)
    const whole = pluck((await list(bed, token)).items, 'id')
    const first = await list(bed, token, '?limit=1')
    const second = await list(bed, token, `?limit=1&cursor=${first.next_cursor}`)
    assert.equal(pluck([...first.items, ...second.items], 'id'), whole)
    assert.is(second.next_cursor, null)
    assert.is((await bed.ask('GET', '/auth/sessions?cursor=x', { token })).status, 400)
  })

  it('show when they were last used, written at most once a minute', async ({ bed }) => {
    const { token } = await register(bed)
    const started = bed.clock.now()
    const lastUsed = async () => (await list(bed, token)).items[0]?.last_used_at
    bed.clock.pass(MINUTE - 1)
    assert.is(await lastUsed(), new Date(started).toISOString())
    assert.is(await lastUsed(), new Date(started).toISOString(), 'the call before wrote nothing')
    bed.clock.pass(1)
    const used = new Date(bed.clock.now()).toISOString()
    await eventually(lastUsed, (time) => time === used)
  })

  it('show nothing of what was not recorded for them', async ({ bed }) => {
    const { email, token } = await register(bed)
    await bed.platform.database.transaction((tx) =>
      updateRows(tx, 'sessions', sql`user_id = (select id from users where email = ${email})`, {
        ...{ last_used_at: null, address_prefix: null, agent: null },
      }),
    )
    const [item] = (await list(bed, token)).items
    assert.equal([item?.last_used_at, item?.address_prefix, item?.agent], [null, null, null])
  })

  it('answer while the database takes no writes', async ({ bed }) => {
    const { token } = await register(bed)
    bed.clock.pass(HOUR)
    const { database } = bed.platform
    const { transaction } = database
    let failed = 0
    const fail = async () => {
      failed += 1
      throw new Error('no writes')
    }
    Object.assign(database, { transaction: fail })
    try {
      assert.ok(await isIn(bed, token))
      assert.is(failed, 1)
    } finally {
      Object.assign(database, { transaction })
    }
  })

  it('end one by one', async ({ bed }) => {
    const { email, token } = await register(bed)
    const other = await logIn(bed, email)
    const [newest] = (await list(bed, token)).items
    assert.is((await bed.ask('DELETE', `/auth/sessions/${newest?.id}`, { token })).status, 204)
    assert.not(await isIn(bed, other))
    assert.is((await bed.ask('DELETE', `/auth/sessions/${newest?.id}`, { token })).status, 404)
    const [own] = (await list(bed, token)).items
    assert.is((await bed.ask('DELETE', `/auth/sessions/${own?.id}`, { token })).status, 204)
    assert.not(await isIn(bed, token))
  })

  it('end all but the one that calls', async ({ bed }) => {
    const { email, token } = await register(bed)
    const stranger = await register(bed)
    const others = [await logIn(bed, email), await logIn(bed, email)]
    assert.is((await bed.ask('DELETE', '/auth/sessions', { token })).status, 204)
    for (const other of others) assert.not(await isIn(bed, other))
    assert.ok(await isIn(bed, token))
    assert.ok(await isIn(bed, stranger.token))
    assert.is((await bed.ask('DELETE', '/auth/sessions', { token })).status, 204, 'and again')
  })

  it('are not listed once they have expired, and removed with the next log-in', async ({ bed }) => {
    const { email, token, id } = await register(bed)
    const expired = bed.platform.ids.next()
    const now = bed.clock.now()
    const row = { user_id: id, token_hash: expired, created_at: now, expires_at: now, setup_only: 0 }
    await bed.platform.database.transaction((tx) => insertRows(tx, 'sessions', [{ id: expired, ...row }]))
    assert.is((await list(bed, token)).items.length, 1)
    await logIn(bed, email)
    assert.not(pluck(await rowsOf(bed.platform, 'sessions', { user_id: id }), 'id').includes(expired))
  })

  it.run()
}
