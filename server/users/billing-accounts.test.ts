import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../test/testkit/databases.ts'
import { openWebTestbed, type WebAnswer, type WebTestbed } from '../test/testkit/web.ts'
import { billingAccountOf } from './sealed-accounts.service.ts'

const PASSWORD = 'a long passphrase'
const IBAN = 'PK36SCBL0000001123456702'

for (const dialect of testDialects()) {
  const it = suite<{ bed: WebTestbed }>(`billing accounts on ${dialect}`)

  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect)
  })
  it.after(({ bed }) => bed.close())

  async function register({ ask }: WebTestbed, role: 'merchant' | 'creator') {
    const { body } = await ask('POST', '/auth/register', {
      body: { email: `${role}@example.pk`, password: PASSWORD, role, display_name: 'Chenab Lawn' },
    })
    const token = String(body.token)
    return {
      id: (body.user as { id: string }).id,
      get: () => ask('GET', '/me', { token }),
      give: (billing_account: unknown, current_password?: string) =>
        ask('PATCH', '/me', { token, body: { billing_account, current_password } }),
    }
  }

  function isRefused({ status, body }: WebAnswer, path: string, message?: RegExp): void {
    assert.equal([status, body.code], [400, 'validation_failed'], JSON.stringify(body))
    const [issue] = body.issues as { path: string; message: string }[]
    assert.is(issue?.path, path)
    if (message) assert.match(issue?.message ?? '', message)
  }

  it('are given by merchants, shown as four characters, and replaced with the password', async ({ bed }) => {
    const merchant = await register(bed, 'merchant')
    const { database } = bed.platform
    const stored = () => billingAccountOf(bed.platform, database.reader, merchant.id, bed.clock.now())
    assert.is((await merchant.get()).body.billing_account, null)
    assert.is(await stored(), null)

    isRefused(await merchant.give({}), 'billing_account', /either iban or raast_id/)
    isRefused(await merchant.give({ iban: IBAN, raast_id: '03001234567' }), 'billing_account', /either/)
    isRefused(
      await merchant.give({ iban: 'PK36SCBL0000001123456703' }),
      'billing_account.iban',
      /check digits/,
    )
    isRefused(await merchant.give({ raast_id: '042 1234567' }), 'billing_account.raast_id', /mobile number/)
    isRefused(await merchant.give({ iban: IBAN, title: 'A' }), 'billing_account.title')

    const first = await merchant.give({ iban: 'pk36 scbl 0000 0011 2345 6702' })
    assert.equal([first.status, first.body.billing_account], [200, { kind: 'iban', last4: '6702' }])
    assert.equal(await stored(), { iban: IBAN })
    assert.is((await merchant.give({ iban: IBAN })).status, 200, 'the same again needs no password')

    bed.clock.pass(1)
    isRefused(
      await merchant.give({ raast_id: '03001234567' }),
      'current_password',
      /replace a billing account/,
    )
    const guessed = await merchant.give({ raast_id: '03001234567' }, 'not the password')
    assert.equal([guessed.status, guessed.body.code], [401, 'invalid_credentials'])
    const replaced = await merchant.give({ raast_id: '+92 300 1234567' }, PASSWORD)
    assert.equal([replaced.status, replaced.body.billing_account], [200, { kind: 'raast_id', last4: '4567' }])
    assert.equal((await merchant.get()).body.billing_account, { kind: 'raast_id', last4: '4567' })
    assert.equal(await stored(), { raastId: '03001234567' })

    const accounts = [
      { kind: 'iban', last4: '6702' },
      { kind: 'raast_id', last4: '4567' },
    ]
    const flags = await database.reader.selectFrom('flags').selectAll().execute()
    assert.equal(
      flags.map(({ kind, subject_id, evidence }) => [kind, subject_id, JSON.parse(evidence)]),
      [['billing_account_replaced', merchant.id, { former_account: accounts[0], new_account: accounts[1] }]],
    )
    const rows = await database.reader.selectFrom('billing_accounts').selectAll().execute()
    const audits = await database.reader.selectFrom('audit_entries').selectAll().orderBy('id').execute()
    assert.equal(
      audits.map(({ action, after }) => [action, JSON.parse(after ?? '').kind]),
      [
        ['user.billing_account', 'iban'],
        ['user.billing_account', 'raast_id'],
      ],
    )
    assert.is(rows.length, 2)
    const kept = JSON.stringify([rows, audits, flags])
    assert.not.ok(kept.includes(IBAN) || kept.includes('3001234567'), 'sealed at rest')
  })

  it('are not for creators', async ({ bed }) => {
    const creator = await register(bed, 'creator')
    isRefused(await creator.give({ iban: IBAN }), 'billing_account', /for merchants only/)
    assert.not.ok('billing_account' in (await creator.get()).body)
  })

  it.run()
}
