import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../proof/testbed/databases.ts'
import { giveDestination } from '../proof/testbed/marketplace.ts'
import { addUser } from '../proof/testbed/people.ts'
import { MINUTE } from '../proof/testbed/testbed.ts'
import { openWatchedWorld, type WatchedWorld } from '../proof/testbed/watched-world.ts'
import { startModerationLoop } from './moderation-loop.ts'

for (const dialect of testDialects()) {
  const it = suite<{ world: WatchedWorld }>(`the moderation loop on ${dialect}`)
  it.before.each(async (context) => {
    context.world = await openWatchedWorld(dialect)
  })
  it.after.each(({ world }) => world.close())

  it('looks at once, and finishes what it has begun before it stops', async ({ world }) => {
    const { platform } = world
    for (const _ of [1, 2]) await giveDestination(platform, (await addUser(platform, 'creator')).userId)
    world.clock.pass(MINUTE)
    await startModerationLoop(platform).stop()
    assert.is((await world.flags('shared_iban')).length, 1)
  })

  it.run()
}
