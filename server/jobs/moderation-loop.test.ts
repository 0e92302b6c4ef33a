import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../test/testkit/databases.ts'
import { giveDestination } from '../test/testkit/marketplace.ts'
import { addUser } from '../test/testkit/people.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { openWatchedWorld, type WatchedWorld } from '../test/testkit/watched-world.ts'
import { Loop } from './loop.ts'
import { moderationLoop } from './worker.ts'

for (const dialect of testDialects()) {
  const it = suite<{ world: WatchedWorld }>(`the moderation loop on ${dialect}`)
  it.before.each(async (context) => {
    context.world = await openWatchedWorld(dialect)
  })
  it.after.each(({ world }) => world.close())

  it('runs immediately, and finishes its run before it stops', async ({ world }) => {
    const { platform } = world
    for (const _ of [1, 2]) await giveDestination(platform, (await addUser(platform, 'creator')).userId)
    world.clock.pass(MINUTE)
    await new Loop(platform, moderationLoop(platform)).stop()
    assert.is((await world.flags('shared_iban')).length, 1)
  })

  it.run()
}
