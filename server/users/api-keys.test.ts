import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { testDialects } from '../test/testkit/databases.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { addApiKey, outcomeOf } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { auditOf, rowsOf } from '../test/testkit/rows.ts'
import { assertForgeryFlagged, writeWithoutKey } from '../test/testkit/tamper.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { isRefused, logIn, PASSWORD, register } from '../test/testkit/web-people.ts'
import { verifyBooks } from '../verification/verify-books.ts'
import { createApiKey } from './api-keys.service.ts'
import { setPassword, suspendUser } from './users.service.ts'

interface Key {
  id: string
  key: string
  last4: string
  last_used_at: string | null
  expires_at: string | null
}

const MALFORMED = ['afk_', `afk_${'x'.repeat(43)}`, `afk_${'x'.repeat(42)}`, `afk-${'x'.repeat(43)}`]

for (const dialect of testDialects()) {
  const it = webSuite(`API keys on ${dialect}`, dialect)

  const create = (bed: WebTestbed, token: string, fields: object = {}) =>
    bed.ask('POST', '/auth/api-keys', { token, body: { name: 'Order desk', scope: 'write', ...fields } })
  const created = async (bed: WebTestbed, token: string, fields: object = {}) => {
    const answer = await create(bed, token, fields)
    assert.is(answer.status, 201, JSON.stringify(answer.body))
    return answer.body as unknown as Key
  }
  const list = async (bed: WebTestbed, token: string) =>
    (await bed.ask('GET', '/auth/api-keys', { token })).body.items as Key[]
  const statusOf = async (bed: WebTestbed, token: string) => (await bed.ask('GET', '/me', { token })).status
  const auditsOf = async ({ platform }: WebTestbed, id: string) =>
    pluckAll(await auditOf(platform, { subject_id: id }), 'actor', 'action', 'after')

  it('are shown once, and call in the name of their account', async ({ bed }) => {
    const { token, id: userId } = await register(bed, 'merchant')
    const { key, ...shown } = await created(bed, token, { expires_in_days: 30 })
    assert.match(key, /^afk_[A-Za-z0-9_-]{43}$/)
    assert.equal(shown, {
      id: shown.id,
      name: 'Order desk',
      scope: 'write',
      last4: key.slice(-4),
      created_at: new Date(bed.clock.now()).toISOString(),
      last_used_at: null,
      expires_at: new Date(bed.clock.now() + 30 * DAY).toISOString(),
    })
    assert.equal(await list(bed, token), [shown])
    const { body } = await bed.ask('GET', '/me', { token: key })
    assert.is(body.id, userId)
    await eventually(
      () => list(bed, token),
      ([item]) => item?.last_used_at === new Date(bed.clock.now()).toISOString(),
    )
    const { rows } = await sql`select * from api_keys`.execute(bed.platform.database.reader)
    assert.not(JSON.stringify(rows).includes(key.slice(4, -4)))
    const after = { name: 'Order desk', scope: 'write', last4: shown.last4 }
    assert.equal(await auditsOf(bed, shown.id), [
      [userId, 'user.create_api_key', { ...after, expires_at: bed.clock.now() + 30 * DAY }],
    ])
    const mails = await rowsOf(bed.platform, 'mails', { user_id: userId }, 'kind')
    assert.equal(pluck(mails, 'kind'), ['api_key_created', 'verify_email'])
  })

  it('need a recent log-in or a step-up', async ({ bed }) => {
    const { token } = await register(bed)
    bed.clock.pass(10 * MINUTE)
    isRefused(await create(bed, token), 403, 'step_up_required')
    const stepUp = (password: string) => bed.ask('POST', '/auth/step-up', { token, body: { password } })
    isRefused(await stepUp('x'), 401, 'invalid_credentials')
    isRefused(await create(bed, token), 403, 'step_up_required')
    assert.is((await stepUp(PASSWORD)).status, 204)
    await created(bed, token)
  })

  it('refuse what is no name, scope or lifetime', async ({ bed }) => {
    const { token } = await register(bed)
    const odd = {
      name: ['', 'x'.repeat(101), '\u202ename'],
      scope: ['admin'],
      expires_in_days: [0, 366, 1.5, null],
    }
    for (const [field, values] of Object.entries(odd)) {
      for (const value of values)
        isRefused(await create(bed, token, { [field]: value }), 400, 'validation_failed', field)
    }
    assert.equal(await list(bed, token), [])
  })

  it('are at most 20, without those that have expired', async ({ bed }) => {
    const { token, email } = await register(bed)
    const first = await created(bed, token, { expires_in_days: 1 })
    for (let n = 1; n < 20; n += 1) await created(bed, token)
    isRefused(await create(bed, token), 409, 'quota_exceeded')
    bed.clock.pass(DAY - 1)
    assert.is(await statusOf(bed, first.key), 200)
    bed.clock.pass(1)
    assert.is(await statusOf(bed, first.key), 401)
    assert.is((await list(bed, token)).length, 19)
    const again = String((await logIn(bed, email)).body.token)
    await created(bed, again)
    isRefused(await create(bed, again), 409, 'quota_exceeded')
  })

  it('end by deletion', async ({ bed }) => {
    const { token } = await register(bed)
    const { id, key } = await created(bed, token)
    const remove = () => bed.ask('DELETE', `/auth/api-keys/${id}`, { token })
    assert.is((await remove()).status, 204)
    assert.is(await statusOf(bed, key), 401)
    isRefused(await remove(), 404, 'not_found')
    const audit = await auditOf(bed.platform, { subject_id: id })
    assert.equal(pluck(audit, 'action'), ['user.create_api_key', 'user.delete_api_key'])
    assert.ok(audit[1]?.before)
  })

  it('end with a suspension and a reset of the password, not with its change', async ({ bed }) => {
    const { token, id } = await register(bed)
    const { key } = await created(bed, token)
    const change = { current_password: PASSWORD, new_password: 'another passphrase' }
    assert.is((await bed.ask('POST', '/auth/password', { token, body: change })).status, 204)
    assert.is(await statusOf(bed, key), 200)
    await setPassword(bed.platform, id, 'a third passphrase')
    assert.is(await statusOf(bed, key), 401)

    const other = await addApiKey(bed.platform, id, 'read')
    assert.is(await statusOf(bed, other.key), 200)
    await suspendUser(bed.platform, { userId: id, actor: 'operator', reason: null })
    assert.is(await statusOf(bed, other.key), 401)
    const last = (await auditsOf(bed, id)).at(-1)
    assert.equal(last, ['operator', 'user.suspend', { suspended: true, api_keys_ended: 1 }])
  })

  it('are not made by a session that ended in between', async ({ bed }) => {
    const { id } = await register(bed)
    const actor = { userId: id, role: 'creator', sessionId: bed.platform.ids.next() } as const
    const making = createApiKey(bed.platform, actor, { name: 'Too late', scope: 'write' })
    assert.is(await outcomeOf(making), 'unauthenticated')
  })

  it('are nothing when they are malformed', async ({ bed }) => {
    for (const token of MALFORMED) assert.is(await statusOf(bed, token), 401, token)
    assert.is((await bed.ask('GET', '/offers', { token: MALFORMED[0] ?? '' })).status, 200)
  })

  it('give no power when someone changed them in the database', async ({ bed }) => {
    const { platform, testDatabase } = bed
    const { id } = await register(bed)
    const other = await register(bed)
    const { key } = await addApiKey(platform, id, 'read')
    const rowsBefore = await platform.database.reader.selectFrom('api_keys').selectAll().execute()
    const ours = sql`user_id = ${id}`
    for (const change of [
      sql`update api_keys set scope = 'write' where ${ours}`,
      sql`update api_keys set user_id = ${other.id} where ${ours}`,
      sql`update api_keys set expires_at = ${bed.clock.now() + DAY} where ${ours}`,
    ]) {
      await writeWithoutKey(testDatabase.database, change)
      assert.is(await statusOf(bed, key), 401)
      await assertForgeryFlagged(platform, 'api_keys')
      const broken = (await verifyBooks(platform)).filter(({ breaches }) => breaches.length > 0)
      assert.ok(broken.some(({ name }) => name === 'rows-authentic-api-keys'))
      await writeWithoutKey(testDatabase.database, sql`delete from api_keys`)
      await testDatabase.database.writer.insertInto('api_keys').values(rowsBefore).execute()
    }
    assert.is(await statusOf(bed, key), 200)
  })

  it.run()
}
