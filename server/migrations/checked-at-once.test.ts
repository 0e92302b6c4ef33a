import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../test/testkit/databases.ts'
import { idNumber, populate } from '../test/testkit/one-of-each.ts'

const SALE = idNumber(64)
const MERCHANT = idNumber(1)
const CREATOR = idNumber(2)
const UNKNOWN_ID = idNumber(999)
const FOREIGN_KEY_VIOLATION = '23503'

for (const dialect of testDialects().filter((one) => one === 'postgresql')) {
  const it = suite<{ test: TestDatabase }>('what is checked once a statement on postgresql')
  it.before.each(async (world) => {
    world.test = await openTestDatabase(dialect)
    await populate(world.test.database)
  })
  it.after.each(({ test }) => test.close())

  const codeOf = (test: TestDatabase, statement: string): Promise<string> =>
    test.database
      .transaction((tx) => sql.raw(statement).execute(tx))
      .then(
        () => 'done',
        (error: { code?: string; message?: string }) => error.code ?? String(error.message),
      )
  /** Adds copies of a row, each with other values, in one statement. */
  const addCopies = (test: TestDatabase, table: string, where: string, changes: object[]) =>
    codeOf(
      test,
      `insert into ${table} select copy.* from ${table} as row, jsonb_array_elements('${JSON.stringify(changes)}') as change,
        jsonb_populate_record(row, change) as copy where ${where}`,
    )
  const salesLike = (test: TestDatabase, ...changes: object[]) =>
    addCopies(
      test,
      'sales',
      `row.id = '${SALE}'`,
      changes.map((change, index) => ({ id: idNumber(800 + index), order_id: `copy ${index}`, ...change })),
    )
  const count = async ({ database }: TestDatabase, table: 'sales' | 'ledger_postings') =>
    (
      await database.reader
        .selectFrom(table)
        .select((select) => select.fn.countAll<number>().as('rows'))
        .executeTakeFirstOrThrow()
    ).rows

  it('takes sales whose store, cycle and link are their merchant’s', async ({ test }) => {
    const rejected = { acceptance_status: 'rejected', rejection_reason: 'not_paid', billing_cycle_id: null }
    const unlinked = { ...rejected, link_id: null, offer_id: null, creator_id: null }
    assert.is(await salesLike(test, {}, rejected, unlinked), 'done')
  })

  const LOST: [string, object][] = [
    ['a store that is not there', { store_id: UNKNOWN_ID }],
    ['another merchant than its store’s', { merchant_id: CREATOR }],
    ['a cycle that is not there', { billing_cycle_id: UNKNOWN_ID }],
    ['a link that is not there', { link_id: UNKNOWN_ID }],
    ['another creator than its link’s', { creator_id: MERCHANT }],
    ['another offer than its link’s', { offer_id: UNKNOWN_ID }],
    ['a link, and no creator', { creator_id: null }],
  ]
  for (const [what, change] of LOST) {
    it(`refuses a sale that names ${what}, with all that is added beside it`, async ({ test }) => {
      const before = await count(test, 'sales')
      assert.is(await salesLike(test, {}, change, {}), FOREIGN_KEY_VIOLATION)
      assert.is(await count(test, 'sales'), before)
    })
  }

  it('refuses a sale in another merchant’s cycle', async ({ test }) => {
    const other = { id: idNumber(700), merchant_id: CREATOR, processor_invoice_id: 'inv_other' }
    const charged = { ...other, processor_payment_reference: 'pay_other' }
    assert.is(await addCopies(test, 'billing_cycles', `row.id = '${idNumber(60)}'`, [charged]), 'done')
    assert.is(await salesLike(test, { billing_cycle_id: other.id }), FOREIGN_KEY_VIOLATION)
  })

  it('refuses postings of no entry, with those of others beside them', async ({ test }) => {
    const before = await count(test, 'ledger_postings')
    const add = (...changes: object[]) =>
      addCopies(
        test,
        'ledger_postings',
        'row = (select first from ledger_postings as first order by entry_id, line limit 1)',
        changes,
      )
    assert.is(await add({ line: 90 }, { line: 91, entry_id: UNKNOWN_ID }), FOREIGN_KEY_VIOLATION)
    assert.is(await count(test, 'ledger_postings'), before)
    assert.is(await add({ line: 90 }), 'done')
  })

  it('refuses bodies of no event, with those of others beside them', async ({ test }) => {
    const bodies = () =>
      test.database.reader
        .selectFrom('inbound_bodies')
        .select((select) => select.fn.countAll<number>().as('rows'))
        .executeTakeFirstOrThrow()
    await codeOf(test, 'delete from inbound_bodies')
    const ofEvents = (...ids: string[]) =>
      codeOf(
        test,
        `insert into inbound_bodies (event_id, encoding, body) select id, 'utf8', '{}' from unnest('{${ids.join()}}'::uuid[]) as id`,
      )
    assert.is(await ofEvents(idNumber(90), UNKNOWN_ID), FOREIGN_KEY_VIOLATION)
    assert.equal(await bodies(), { rows: 0 })
    assert.is(await ofEvents(idNumber(90), idNumber(91)), 'done')
    assert.is.not(await codeOf(test, `update inbound_events set id = '${UNKNOWN_ID}'`), 'done')
  })

  it('lets nothing go, nor be called otherwise, that is referred to', async ({ test }) => {
    const refused = [
      `delete from stores where id = '${idNumber(11)}'`,
      `update stores set id = '${UNKNOWN_ID}' where id = '${idNumber(11)}'`,
      `update stores set merchant_id = '${CREATOR}'`,
      `truncate stores cascade`,
      `delete from users where id = '${MERCHANT}'`,
      `update billing_cycles set id = '${UNKNOWN_ID}' where id = '${idNumber(62)}'`,
      'delete from billing_cycles',
      `update ledger_entries set id = '${UNKNOWN_ID}'`,
      'delete from ledger_entries',
      'delete from affiliate_links',
      `update affiliate_links set creator_id = merchant_id`,
    ]
    for (const statement of refused) assert.is.not(await codeOf(test, statement), 'done', statement)
    const shut = `update stores set removed_at = 1, shop_domain = 'b.myshopify.com' where id = '${idNumber(11)}'`
    assert.is(await codeOf(test, shut), 'done')
  })

  it.run()
}
