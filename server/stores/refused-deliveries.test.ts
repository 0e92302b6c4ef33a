import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Platform } from '../platform/platform.ts'
import { addMerchant } from '../test/testkit/listings.ts'
import { assertMapped, pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { MINUTE, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { countedUnclaimed, RefusedDeliveries } from './refused-deliveries.service.ts'

for (const dialect of proofDialects()) {
  const it = suite<{ bed: Testbed; refused: RefusedDeliveries; domain: string }>(
    `refused deliveries on ${dialect}`,
  )
  it.before.each(async (context) => {
    context.bed = await openTestbed(dialect)
    await addMerchant(context.bed.platform)
    context.refused = new RefusedDeliveries(context.bed.platform)
    context.domain = (await storeOf(context.bed)).shop_domain
  })
  it.after.each(({ bed }) => bed.close())

  const storeOf = ({ platform }: Testbed) => rowOf(platform, 'stores')

  it('are counted in a row, until a valid one is applied', async ({ bed, refused, domain }) => {
    const { platform, clock } = bed
    const first = clock.now()
    refused.note(domain, 'wrong_signature')
    await refused.flush()
    clock.pass(MINUTE)
    refused.note(domain, 'wrong_signature')
    refused.note(domain, 'no_signature')
    await refused.flush({ all: true })
    const store = await storeOf(bed)
    assert.equal(
      [store.refused_since, store.refused_count, store.last_refused_at, store.last_refusal],
      [first, 3, clock.now(), 'no_signature'],
    )
    clock.pass(MINUTE)
    const counts = { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 }
    const day = { store_id: store.id, day: 1, ...counts, last_event_at: clock.now() }
    await platform.database.transaction((tx) => tx.insertInto('store_days').values(day).execute())
    clock.pass(MINUTE)
    refused.note(domain, 'wrong_signature')
    await refused.flush({ all: true })
    const after = await storeOf(bed)
    assert.equal([after.refused_since, after.refused_count], [clock.now(), 1])
  })

  it('that follow a valid one within the minute are noted too', async ({ bed, refused, domain }) => {
    const { clock } = bed
    refused.note(domain, 'wrong_signature')
    await refused.flush()
    const noted = async () => (await storeOf(bed)).last_refused_at
    const first = await noted()
    clock.pass(1000)
    refused.note(domain, 'wrong_signature')
    await refused.flush()
    assert.is(await noted(), first, 'one write in a minute')
    refused.accepted(domain)
    clock.pass(1000)
    refused.note(domain, 'no_signature')
    await refused.flush()
    assert.is(await noted(), clock.now())
    assert.is((await storeOf(bed)).refused_count, 2, 'the one before the valid one is not counted')
  })

  it('for domains without a claim are counted by domain', async ({ bed, refused, domain }) => {
    for (const named of ['typo.myshopify.com', 'typo.myshopify.com', 'once.example', domain])
      refused.noteUnclaimed(named)
    for (const odd of ['no host', 'a'.repeat(300), '../etc', '']) refused.noteUnclaimed(odd)
    await refused.flush()
    bed.clock.pass(MINUTE)
    refused.noteUnclaimed('typo.myshopify.com')
    await refused.flush()
    const counted = await countedUnclaimed(bed.platform)
    assertMapped(counted, (row) => [row.shop_domain, row.deliveries, row.last_at - row.first_at], [
      ['typo.myshopify.com', 3, MINUTE],
      ['once.example', 1, 0],
    ])
    const searched = await countedUnclaimed(bed.platform, ' Once.Example ')
    assert.equal(pluck(searched, 'shop_domain'), ['once.example'])
  })

  it('for random domains take bounded rows and displace no frequent one', async ({ bed, refused }) => {
    for (let times = 0; times < 3; times += 1) refused.noteUnclaimed('typo.myshopify.com')
    await refused.flush()
    for (let round = 0; round < 4; round += 1) {
      bed.clock.pass(1000)
      for (let one = 0; one < 500; one += 1) refused.noteUnclaimed(`random-${round}-${one}.example`)
      await refused.flush()
    }
    const counted = await countedUnclaimed(bed.platform)
    assert.is(counted[0]?.shop_domain, 'typo.myshopify.com')
    assert.ok(counted.length <= 200, `${counted.length} rows`)
    bed.clock.pass(31 * 1440 * MINUTE)
    refused.noteUnclaimed('fresh.example')
    await refused.flush()
    assert.is((await countedUnclaimed(bed.platform)).length, 1, 'old ones go')
  })

  it.run()
}

const it = suite('refused deliveries')

it('cost one transaction, however many come', async () => {
  let transactions = 0
  const warnings: unknown[] = []
  const platform = {
    clock: { now: () => 1 },
    database: {
      transaction() {
        transactions += 1
        return transactions > 1 ? Promise.reject(new Error('full')) : Promise.resolve()
      },
    },
    log: { warn: (facts: unknown) => warnings.push(facts) },
  } as unknown as Platform
  const refused = new RefusedDeliveries(platform)
  for (let round = 0; round < 3; round += 1) {
    for (let times = 0; times < 5000; times += 1) refused.note(`shop-${times % 900}.example`, 'no_signature')
    await refused.flush()
    assert.is(transactions, 1)
  }
  refused.note('another.example', 'wrong_signature')
  await refused.flush()
  assert.is(warnings.length, 1, 'a note that cannot be written fails nothing')
})

it.run()
