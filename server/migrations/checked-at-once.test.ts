import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase, type TestDatabase } from '../test/testkit/databases.ts'
import { idNumber, populate } from '../test/testkit/one-of-each.ts'

const MERCHANT = idNumber(1)
const CREATOR = idNumber(2)
const UNKNOWN_ID = idNumber(999)
const FOREIGN_KEY_VIOLATION = '23503'

const it = suite<TestDatabase>('what is checked once a statement on postgresql')
it.before(async (context) => {
  Object.assign(context, await openTestDatabase('postgresql'))
  await populate(context.database)
})
it.after(({ close }) => close())

/** Tries the statements in a transaction, which is undone in any case. */
const outcomeOf = ({ database }: TestDatabase, ...statements: string[]): Promise<string> =>
  database
    .transaction(async (tx) => {
      for (const statement of statements) await sql.raw(statement).execute(tx)
      throw new Error('done')
    })
    .catch((error: Error & { code?: string }) => error.code ?? error.message)

/** Adds copies of a row, each with other values, in one statement. */
const addCopies = (table: string, where: string, ...changes: object[]) =>
  `insert into ${table} select copy.* from ${table} as row, jsonb_array_elements('${JSON.stringify(changes)}') as change,
    jsonb_populate_record(row, change) as copy where ${where}`
const salesLike = (...changes: object[]) =>
  addCopies(
    'sales',
    `row.id = '${idNumber(64)}'`,
    ...changes.map((change, index) => ({ id: idNumber(800 + index), order_id: `copy ${index}`, ...change })),
  )
const postings = (...changes: object[]) =>
  addCopies(
    'ledger_postings',
    'row = (select first from ledger_postings as first order by entry_id, line limit 1)',
    ...changes,
  )
const bodies = (...ids: string[]) =>
  `insert into inbound_bodies (event_id, encoding, body) select id, 'utf8', '{}' from unnest('{${ids.join()}}'::uuid[]) as id`
const NO_BODIES = 'delete from inbound_bodies'
const REJECTED = { acceptance_status: 'rejected', rejection_reason: 'not_paid', billing_cycle_id: null }
const UNLINKED = { ...REJECTED, link_id: null, offer_id: null, creator_id: null }
const OTHERS_CYCLE = {
  ...{ id: idNumber(700), merchant_id: CREATOR },
  ...{ processor_invoice_id: 'inv_other', processor_payment_reference: 'pay_other' },
}

const TAKEN: [what: string, ...statements: string[]][] = [
  ['sales whose store, cycle and link are one merchant’s', salesLike({}, REJECTED, UNLINKED)],
  ['postings of an entry', postings({ line: 90 })],
  ['bodies of events', NO_BODIES, bodies(idNumber(90), idNumber(91))],
  [
    'a new domain for a store that is removed',
    `update stores set removed_at = 1, shop_domain = 'b.myshopify.com' where id = '${idNumber(11)}'`,
  ],
]

const LOST: [what: string, ...statements: string[]][] = [
  ...Object.entries({
    'a store that is not there': { store_id: UNKNOWN_ID },
    'another merchant than its store’s': { merchant_id: CREATOR },
    'a cycle that is not there': { billing_cycle_id: UNKNOWN_ID },
    'a link that is not there': { link_id: UNKNOWN_ID },
    'another creator than its link’s': { creator_id: MERCHANT },
    'another offer than its link’s': { offer_id: UNKNOWN_ID },
    'a link, and no creator': { creator_id: null },
  }).map(([what, change]): [string, string] => [`a sale that names ${what}`, salesLike({}, change, {})]),
  [
    'a sale in another merchant’s cycle',
    addCopies('billing_cycles', `row.id = '${idNumber(60)}'`, OTHERS_CYCLE),
    salesLike({ billing_cycle_id: OTHERS_CYCLE.id }),
  ],
  ['a posting of no entry', postings({ line: 90 }, { line: 91, entry_id: UNKNOWN_ID })],
  ['a body of no event', NO_BODIES, bodies(idNumber(90), UNKNOWN_ID)],
]

for (const [what, ...statements] of TAKEN)
  it(`takes ${what}`, async (test) => assert.is(await outcomeOf(test, ...statements), 'done'))

for (const [what, ...statements] of LOST)
  it(`refuses ${what}`, async (test) =>
    assert.is(await outcomeOf(test, ...statements), FOREIGN_KEY_VIOLATION))

it('lets nothing go, nor be called otherwise, that is referred to', async (test) => {
  for (const statement of [
    `delete from stores where id = '${idNumber(11)}'`,
    `update stores set id = '${UNKNOWN_ID}' where id = '${idNumber(11)}'`,
    `update stores set merchant_id = '${CREATOR}'`,
    'truncate stores cascade',
    `delete from users where id = '${MERCHANT}'`,
    `update billing_cycles set id = '${UNKNOWN_ID}' where id = '${idNumber(62)}'`,
    'delete from billing_cycles',
    `update ledger_entries set id = '${UNKNOWN_ID}'`,
    'delete from ledger_entries',
    'delete from affiliate_links',
    'update affiliate_links set creator_id = merchant_id',
    `update inbound_events set id = '${UNKNOWN_ID}'`,
  ])
    assert.is.not(await outcomeOf(test, statement), 'done', statement)
})

onPostgres(it).run()
