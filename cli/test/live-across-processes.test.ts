// mostly waits

import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { subscribeSignals } from '../../server/platform/cache/signals.ts'
import { systemClock } from '../../server/platform/clock.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { elsewhere, follow, openWebSide } from '../../server/test/testkit/live-followers.ts'
import { openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { logIn } from '../../server/test/testkit/people.ts'
import { APP_KEY } from './run-affiliate.ts'
import { runHere } from './run-here.ts'

const it = suite('live streams of a running service')
for (const dialect of testDialects())
  it(`end after a suspension by the command line on ${dialect}`, async () => {
    const market = await openMarketplace(dialect)
    market.clock.set(new Date().toISOString())
    const { url, folder, database } = market.bed.testDatabase
    const platform = { ...elsewhere(market.platform), clock: systemClock }
    const web = await openWebSide(platform)
    const subscription = subscribeSignals(platform, database)
    try {
      await subscription.ready
      const creator = await market.addCreator()
      const token = await logIn(platform, creator)
      const stream = follow(web.base, token)
      await stream.until(() => stream.events.length > 0)
      const settings = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY }
      const { code, stderr } = await runHere(['users', 'suspend', creator.userId, '--yes'], settings)
      assert.is(code, 0, stderr)
      await stream.until(() => stream.refusal() === 'unauthenticated')
      const me = await fetch(`${web.base}/me`, { headers: { authorization: `Bearer ${token}` } })
      assert.is(me.status, 401)
    } finally {
      await web.close()
      await subscription.stop()
      await market.close()
    }
  })

it.run()
