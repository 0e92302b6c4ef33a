// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { PLAYS_ALL } from '../testkit/proof-size.ts'
import { HOUR } from '../testkit/testbed.ts'
import { ADVERSARIES } from './adversaries.ts'
import { type AdversaryWorld, openAdversaryWorld } from './adversary-world.ts'

for (const dialect of testDialects()) {
  const it = suite<{ world: AdversaryWorld }>(`adversaries on ${dialect}`)
  it.before.each(async (context) => {
    context.world = await openAdversaryWorld(dialect)
  })
  it.after.each(({ world }) => world.close())

  for (const [index, { who, does, act, expect }] of ADVERSARIES.entries()) {
    // An example plays every third of them, most on SQLite.
    const played: TestDialect = index % 12 === 0 ? 'postgresql' : 'sqlite'
    if (!PLAYS_ALL && (index % 3 > 0 || played !== dialect)) continue
    it(`a ${who} ${does}`, async ({ world }) => {
      const statuses = await act(world)
      await world.work()
      const { rejected = [], flagged = [], refused = [] } = expect
      assert.equal(await world.rejections(), rejected)
      assert.equal(await world.flags(), flagged)
      assert.equal(Array.isArray(statuses) ? statuses : [], refused)
      const outcomes = [...rejected, ...flagged, ...refused]
      assert.ok(outcomes.length > 0, 'nothing was rejected, refused or flagged')
      await world.market.verify()
    })
  }

  it('honest trade raises no flag: late payments, redeliveries, two orders of one', async ({ world }) => {
    const { clock } = world.market
    const clicks = await world.follows(6)
    const createdAt = clock.now() + HOUR
    clock.pass(2 * HOUR)
    const cashOnDelivery = { id: '501', click: clicks[0] ?? '', createdAt }
    await world.report({ ...cashOnDelivery, financialStatus: 'pending', triggeredAt: createdAt })
    await world.report({ ...cashOnDelivery, financialStatus: 'pending', triggeredAt: createdAt })
    await world.days(20)
    await world.report({ ...cashOnDelivery, price: 90_000, triggeredAt: clock.now() })
    await world.report({ ...cashOnDelivery, price: 90_000, triggeredAt: clock.now() })
    await world.report({ click: clicks[1] ?? '' })
    await world.report({ click: clicks[1] ?? '' })
    const inApp = await world.follow({ 'user-agent': 'WhatsApp/2.23' })
    await world.report({ click: inApp ?? '' })
    const ahead = await world.follow({ 'sec-purpose': 'prefetch', 'sec-fetch-dest': 'empty' })
    await world.report({ click: ahead ?? '' })
    await world.report({})
    await world.days(3)
    await world.work()
    assert.equal(await world.rejections(), ['no_tracking_reference'])
    assert.equal(await world.flags(), [])
    await world.market.verify()
  })

  it.run()
}
