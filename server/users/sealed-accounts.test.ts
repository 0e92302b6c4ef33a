import * as assert from 'uvu/assert'
import { assertMapped } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { auditOf, columnsOf, rowsOf } from '../test/testkit/rows.ts'
import type { Answer } from '../test/testkit/service-bed.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { isRefused, register as open, PASSWORD } from '../test/testkit/web-people.ts'
import { billingAccountOf, destinationsInForce, openDestination } from './sealed-accounts.service.ts'

const IBAN = 'PK36SCBL0000001123456702'
const OTHER_IBAN = 'PK24SCBL0000001171495101'

async function register(bed: WebTestbed, role: 'creator' | 'merchant' = 'creator') {
  const { token, id } = await open(bed, role)
  return {
    token,
    id,
    get: () => bed.ask('GET', '/me', { token }),
    give: (billing_account: unknown, current_password?: string) =>
      bed.ask('PATCH', '/me', { token, body: { billing_account, current_password } }),
  }
}

function isInvalid(answer: Answer, path: string, message: RegExp): void {
  isRefused(answer, 400, 'validation_failed', path)
  assert.match((answer.body.issues as { message: string }[])[0]?.message ?? '', message)
}

for (const dialect of proofDialects()) {
  const it = webSuite(`sealed accounts on ${dialect}`, dialect)

  it('takes a first payout destination at once, and a replacement after 24 hours', async ({ bed }) => {
    const { token, id } = await register(bed)
    const patch = (iban: string, title: string, current_password?: string) =>
      bed.ask('PATCH', '/me', {
        token,
        body: { payout_destination: { iban, account_title: title }, current_password },
      })
    const flags = () => rowsOf(bed.platform, 'flags', { subject_id: id })
    const effective = async () => {
      const { reader } = bed.platform.database
      const destination = (await destinationsInForce(reader, [id], bed.clock.now())).get(id)
      return destination && openDestination(bed.platform, id, destination.id, 0)
    }

    for (const iban of ['PK36SCBL0000001123456703', 'DE89370400440532013000'])
      isRefused(await patch(iban, 'A'), 400, 'validation_failed', 'payout_destination.iban')
    assert.is(await effective(), undefined)

    const first = await patch(' pk36 scbl 0000 0011 2345 6702', 'Ayesha')
    assert.equal(first.body.payout_destination, { iban_last4: '6702', account_title: 'Ayesha' })
    assert.equal(await effective(), { iban: IBAN, account_title: 'Ayesha' })
    assert.not.ok(JSON.stringify(first.body).includes(IBAN))
    assert.is((await patch(IBAN, 'Ayesha')).status, 200, 'the same again needs no password')
    assert.equal(await flags(), [])

    isRefused(await patch(OTHER_IBAN, 'Ayesha'), 400, 'validation_failed', 'current_password')
    isRefused(await patch(OTHER_IBAN, 'Ayesha', 'not the password'), 401, 'invalid_credentials')
    assert.equal(await flags(), [])

    const replaced = await patch(OTHER_IBAN, 'Ayesha', PASSWORD)
    assert.is(replaced.status, 200)
    assert.equal(replaced.body.payout_destination, { iban_last4: '6702', account_title: 'Ayesha' })
    const effectiveAt = new Date(bed.clock.now() + DAY).toISOString()
    assert.equal(replaced.body.upcoming_payout_destination, {
      iban_last4: '5101',
      account_title: 'Ayesha',
      effective_at: effectiveAt,
    })
    const [flag] = await flags()
    assert.equal([flag?.kind, flag?.severity], ['payout_destination_replaced', 'medium'])
    assert.equal(JSON.parse(flag?.evidence ?? ''), {
      former_iban_last4: '6702',
      new_iban_last4: '5101',
      effective_at: effectiveAt,
    })

    assert.is((await effective())?.iban, IBAN)
    bed.clock.pass(DAY)
    assert.is((await effective())?.iban, OTHER_IBAN)
    const inForce = await destinationsInForce(bed.platform.database.reader, [id], bed.clock.now())
    assert.is(inForce.get(id)?.created_at, bed.clock.now() - DAY)
    const me = await bed.ask('GET', '/me', { token })
    assert.equal(me.body.payout_destination, { iban_last4: '5101', account_title: 'Ayesha' })
    assert.is(me.body.upcoming_payout_destination, null)

    const audits = await auditOf(bed.platform, { actor: id })
    assertMapped(audits, ({ action, before, after }) => [action, before?.iban_last4, after?.iban_last4], [
      ['user.payout_destination', undefined, '6702'],
      ['user.payout_destination', '6702', '5101'],
    ])
    assert.is(audits[1]?.after.effective_at, effectiveAt)
    assert.not.ok(JSON.stringify(audits).includes(IBAN) || JSON.stringify(audits).includes(OTHER_IBAN))

    const rows = await bed.platform.database.reader.selectFrom('payout_destinations').selectAll().execute()
    assert.not.ok(JSON.stringify(rows).includes(OTHER_IBAN), 'sealed at rest')
  })

  it('lets only one of two first destinations be the first', async ({ bed }) => {
    const { token, id } = await register(bed)
    const patch = (iban: string) =>
      bed.ask('PATCH', '/me', { token, body: { payout_destination: { iban, account_title: 'A' } } })
    const statuses = (await Promise.all([patch(IBAN), patch(OTHER_IBAN)])).map((one) => one.status)
    assert.equal(statuses.sort(), [200, 400])
    const rows = await columnsOf(bed.platform, 'payout_destinations', ['id'], { user_id: id })
    assert.is(rows.length, 1)
  })

  it('takes billing accounts, shows four characters, replaces them by password', async ({ bed }) => {
    const merchant = await register(bed, 'merchant')
    const { database } = bed.platform
    const stored = () => billingAccountOf(bed.platform, database.reader, merchant.id, bed.clock.now())
    assert.is((await merchant.get()).body.billing_account, null)
    assert.is(await stored(), null)

    const odd: [account: object, path: string, message: RegExp][] = [
      [{}, 'billing_account', /either iban or raast_id/],
      [{ iban: IBAN, raast_id: '03001234567' }, 'billing_account', /either/],
      [{ iban: 'PK36SCBL0000001123456703' }, 'billing_account.iban', /check digits/],
      [{ raast_id: '042 1234567' }, 'billing_account.raast_id', /mobile number/],
      [{ iban: IBAN, title: 'A' }, 'billing_account.title', /./],
    ]
    for (const [account, path, message] of odd) isInvalid(await merchant.give(account), path, message)

    const first = await merchant.give({ iban: 'pk36 scbl 0000 0011 2345 6702' })
    assert.equal([first.status, first.body.billing_account], [200, { kind: 'iban', last4: '6702' }])
    assert.equal(await stored(), { iban: IBAN })
    assert.is((await merchant.give({ iban: IBAN })).status, 200, 'the same again needs no password')

    bed.clock.pass(1)
    const other = { raast_id: '03001234567' }
    isInvalid(await merchant.give(other), 'current_password', /replace a billing account/)
    isRefused(await merchant.give(other, 'not the password'), 401, 'invalid_credentials')
    const replaced = await merchant.give({ raast_id: '+92 300 1234567' }, PASSWORD)
    assert.equal([replaced.status, replaced.body.billing_account], [200, { kind: 'raast_id', last4: '4567' }])
    assert.equal((await merchant.get()).body.billing_account, { kind: 'raast_id', last4: '4567' })
    assert.equal(await stored(), { raastId: '03001234567' })

    const accounts = [
      { kind: 'iban', last4: '6702' },
      { kind: 'raast_id', last4: '4567' },
    ]
    const flags = await rowsOf({ database }, 'flags', { subject_id: merchant.id })
    assert.equal(
      flags.map(({ kind, evidence }) => [kind, JSON.parse(evidence)]),
      [['billing_account_replaced', { former_account: accounts[0], new_account: accounts[1] }]],
    )
    const rows = await database.reader.selectFrom('billing_accounts').selectAll().execute()
    const audits = await auditOf(bed.platform, { actor: merchant.id })
    assertMapped(audits, ({ action, after }) => [action, after.kind], [
      ['user.billing_account', 'iban'],
      ['user.billing_account', 'raast_id'],
    ])
    assert.is(rows.length, 2)
    const kept = JSON.stringify([rows, audits, flags])
    assert.not.ok(kept.includes(IBAN) || kept.includes('3001234567'), 'sealed at rest')
  })

  it('takes no billing account of a creator', async ({ bed }) => {
    const creator = await register(bed)
    isInvalid(await creator.give({ iban: IBAN }), 'billing_account', /for merchants only/)
    assert.not.ok('billing_account' in (await creator.get()).body)
  })

  it.run()
}
