import * as assert from 'uvu/assert'
import { PRODUCTION } from '../../cli/test/run-affiliate.ts'
import { appRouter } from '../http/router.ts'
import { createOffer } from '../offers/offers.service.ts'
import { proceduresOf } from '../platform/api/procedure.ts'
import { codeOf } from '../test/testkit/authenticator.ts'
import { addMerchant, OFFER } from '../test/testkit/listings.ts'
import { logIn as logInAs } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { isRefused, logIn, newEmail, PASSWORD } from '../test/testkit/web-people.ts'
import { confirmTotp, startTotp } from './second-factor.service.ts'
import { createAdmin, type UserRow } from './users.service.ts'

const newAdmin = ({ platform }: WebTestbed): Promise<UserRow> =>
  createAdmin(platform, newEmail(), PASSWORD, 'Admin')

/** A token that can only set up a second factor. */
async function setupToken(bed: WebTestbed, admin: UserRow): Promise<string> {
  const answer = await logIn(bed, admin.email)
  assert.equal([answer.status, answer.body.second_factor_setup_required], [200, true])
  return String(answer.body.token)
}

for (const dialect of proofDialects()) {
  const it = webSuite(`admins in production on ${dialect}`, dialect, PRODUCTION)

  it('set up a second factor at their log-in, before they can do anything else', async ({ bed }) => {
    const admin = await newAdmin(bed)
    const token = await setupToken(bed, admin)
    isRefused(await bed.ask('GET', '/admin/flagged', { token }), 403, 'forbidden')
    const { secret } = (await bed.ask('POST', '/auth/totp', { token })).body
    const confirm = (code: string) => bed.ask('POST', '/auth/totp/confirm', { token, body: { code } })
    isRefused(await confirm('000000'), 401, 'invalid_credentials')
    isRefused(await bed.ask('GET', '/admin/flagged', { token }), 403, 'forbidden')
    assert.is((await confirm(codeOf(String(secret), bed.clock))).status, 200)
    assert.is((await bed.ask('GET', '/admin/flagged', { token })).status, 200)

    isRefused(await logIn(bed, admin.email), 401, 'second_factor_required')
    bed.clock.pass(30_000)
    const answer = await logIn(bed, admin.email, { code: codeOf(String(secret), bed.clock) })
    assert.equal([answer.status, answer.body.second_factor_setup_required], [200, undefined])
    assert.is(answer.body.expires_at, new Date(bed.clock.now() + 12 * HOUR).toISOString())
    const later = String(answer.body.token)
    bed.clock.pass(12 * HOUR - 1)
    assert.is((await bed.ask('GET', '/admin/flagged', { token: later })).status, 200)
    bed.clock.pass(1)
    isRefused(await bed.ask('GET', '/admin/flagged', { token: later }), 401, 'unauthenticated')
  })

  it('can call nothing else with a token for the set-up', async ({ bed }) => {
    const token = await setupToken(bed, await newAdmin(bed))
    const procedures = proceduresOf(appRouter).filter(
      ({ meta, type }) => meta.callers !== 'public' && type !== 'subscription',
    )
    const during = procedures.filter(({ meta }) => meta.duringSetup).map(({ name }) => name)
    assert.equal(during, ['auth.logout', 'auth.startTotp', 'auth.confirmTotp'])
    for (const { name, type } of procedures.filter(({ meta }) => !meta.duringSetup)) {
      const [method, body] = type === 'query' ? ['GET'] : ['POST', {}]
      assert.is((await bed.ask(method, `/trpc/${name}`, { token, body })).status, 403, name)
    }
    const file = await bed.ask('GET', '/jobs/019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e/file', { token })
    isRefused(file, 403, 'forbidden')
    assert.is((await bed.ask('POST', '/auth/logout', { token })).status, 204)
  })

  it('are a visitor to public routes with a token for the set-up', async ({ bed }) => {
    const { platform } = bed
    const merchant = await addMerchant(platform)
    const { id } = await createOffer(platform, merchant.userId, OFFER)
    const read = (token: string) => bed.ask('GET', `/offers/${id}`, { token })
    assert.is((await read(await logInAs(platform, merchant))).status, 200)
    isRefused(await read(await setupToken(bed, await newAdmin(bed))), 404, 'not_found')
  })

  it('keep their second factor', async ({ bed }) => {
    const admin = await newAdmin(bed)
    const { secret } = await startTotp(bed.platform, admin.id)
    await confirmTotp(bed.platform, admin.id, codeOf(secret, bed.clock), 'operator')
    bed.clock.pass(30_000)
    const token = String((await logIn(bed, admin.email, { code: codeOf(secret, bed.clock) })).body.token)
    const body = { code: codeOf(secret, bed.clock, 1) }
    isRefused(await bed.ask('DELETE', '/auth/totp', { token, body }), 409, 'conflict')
  })

  it.run()

  const elsewhere = webSuite(`admins outside production on ${dialect}`, dialect)

  elsewhere('need no second factor, and may have one', async ({ bed }) => {
    const admin = await newAdmin(bed)
    const answer = await logIn(bed, admin.email)
    assert.is(answer.body.second_factor_setup_required, undefined)
    assert.is(answer.body.expires_at, new Date(bed.clock.now() + 30 * DAY).toISOString())
    const token = String(answer.body.token)
    assert.is((await bed.ask('GET', '/admin/flagged', { token })).status, 200)
    const secret = String((await bed.ask('POST', '/auth/totp', { token })).body.secret)
    const body = { code: codeOf(secret, bed.clock) }
    assert.is((await bed.ask('POST', '/auth/totp/confirm', { token, body })).status, 200)
    isRefused(await logIn(bed, admin.email), 401, 'second_factor_required')
  })

  elsewhere.run()
}
