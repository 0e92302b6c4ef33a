import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../test/testkit/databases.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebAnswer, type WebTestbed } from '../test/testkit/web.ts'
import { destinationsInForce, openDestination } from './sealed-accounts.service.ts'

const PASSWORD = 'a long passphrase'
const IBAN = 'PK36SCBL0000001123456702'
const OTHER_IBAN = 'PK24SCBL0000001171495101'

let counter = 0

async function newCreator(bed: WebTestbed) {
  const email = `creator${counter++}@example.pk`
  const { body } = await bed.ask('POST', '/auth/register', {
    body: { email, password: PASSWORD, role: 'creator', display_name: 'Ayesha' },
  })
  return { token: String(body.token), id: String((body.user as { id: string }).id) }
}

/** What a user has left in the audit trail, oldest first. */
async function auditsOf({ platform }: WebTestbed, actor: string) {
  const rows = await platform.database.reader
    .selectFrom('audit_entries')
    .selectAll()
    .where('actor', '=', actor)
    .orderBy('id')
    .execute()
  return rows.map(({ action, subject_id, before, after }) => ({
    action,
    subject_id,
    before: JSON.parse(before ?? 'null'),
    after: JSON.parse(after ?? 'null'),
  }))
}

function isRefused(answer: WebAnswer, status: number, code: string, path?: string): void {
  assert.is(answer.body.code, code, JSON.stringify(answer.body))
  assert.is(answer.status, status)
  if (path) assert.is((answer.body.issues as { path: string }[])[0]?.path, path)
}

for (const dialect of testDialects()) {
  const it = suite<{ bed: WebTestbed }>(`payout destinations on ${dialect}`)

  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect)
  })
  it.after(({ bed }) => bed.close())

  it('takes a first payout destination at once, and a replacement after 24 hours', async ({ bed }) => {
    const { token, id } = await newCreator(bed)
    const patch = (iban: string, title: string, current_password?: string) =>
      bed.ask('PATCH', '/me', {
        token,
        body: { payout_destination: { iban, account_title: title }, current_password },
      })
    const flags = () =>
      bed.platform.database.reader.selectFrom('flags').selectAll().where('subject_id', '=', id).execute()
    const effective = async () => {
      const { reader } = bed.platform.database
      const destination = (await destinationsInForce(reader, [id], bed.clock.now())).get(id)
      return destination && openDestination(bed.platform, id, destination.id, 0)
    }

    isRefused(
      await patch('PK36SCBL0000001123456703', 'A'),
      400,
      'validation_failed',
      'payout_destination.iban',
    )
    isRefused(await patch('DE89370400440532013000', 'A'), 400, 'validation_failed', 'payout_destination.iban')
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
    assert.is(flag?.kind, 'payout_destination_replaced')
    assert.is(flag?.severity, 'medium')
    assert.equal(JSON.parse(flag?.evidence ?? ''), {
      former_iban_last4: '6702',
      new_iban_last4: '5101',
      effective_at: effectiveAt,
    })

    assert.is((await effective())?.iban, IBAN)
    bed.clock.pass(DAY)
    assert.is((await effective())?.iban, OTHER_IBAN)
    const inForce = await destinationsInForce(bed.platform.database.reader, [id], bed.clock.now())
    assert.is(inForce.get(id)?.createdAt, bed.clock.now() - DAY)
    const me = await bed.ask('GET', '/me', { token })
    assert.equal(me.body.payout_destination, { iban_last4: '5101', account_title: 'Ayesha' })
    assert.is(me.body.upcoming_payout_destination, null)

    const audits = await auditsOf(bed, id)
    assert.equal(
      audits.map(({ action, before, after }) => [action, before?.iban_last4, after?.iban_last4]),
      [
        ['user.payout_destination', undefined, '6702'],
        ['user.payout_destination', '6702', '5101'],
      ],
    )
    assert.is(audits[1]?.after.effective_at, effectiveAt)
    assert.not.ok(JSON.stringify(audits).includes(IBAN) || JSON.stringify(audits).includes(OTHER_IBAN))

    const rows = await bed.platform.database.reader.selectFrom('payout_destinations').selectAll().execute()
    assert.not.ok(JSON.stringify(rows).includes(OTHER_IBAN), 'sealed at rest')
  })

  it('records a change of the password', async ({ bed }) => {
    const { token, id } = await newCreator(bed)
    const change = (current_password: string) =>
      bed.ask('POST', '/auth/password', {
        token,
        body: { current_password, new_password: 'another long passphrase' },
      })
    assert.is((await change('not the password')).status, 401)
    assert.equal(await auditsOf(bed, id), [])
    assert.is((await change(PASSWORD)).status, 204)
    assert.equal(await auditsOf(bed, id), [
      {
        action: 'user.change_password',
        subject_id: id,
        before: null,
        after: { sessions_ended: 'all others' },
      },
    ])
  })

  it('lets only one of two first destinations be the first', async ({ bed }) => {
    const { token, id } = await newCreator(bed)
    const patch = (iban: string) =>
      bed.ask('PATCH', '/me', { token, body: { payout_destination: { iban, account_title: 'A' } } })
    const statuses = (await Promise.all([patch(IBAN), patch(OTHER_IBAN)])).map((one) => one.status)
    assert.equal(statuses.sort(), [200, 400])
    const rows = await bed.platform.database.reader
      .selectFrom('payout_destinations')
      .select('id')
      .where('user_id', '=', id)
      .execute()
    assert.is(rows.length, 1)
  })

  it.run()
}
