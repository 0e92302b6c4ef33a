// mostly waits

import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { publishSignals, subscribeSignals } from '../../server/platform/cache/signals.ts'
import { systemClock } from '../../server/platform/clock.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { startService } from '../../server/service.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { elsewhere, follow, openWebSide, type WebSide } from '../../server/test/testkit/live-followers.ts'
import { type Marketplace, openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { logIn } from '../../server/test/testkit/people.ts'
import { APP_KEY } from './run-affiliate.ts'
import { runHere } from './run-here.ts'

interface Context {
  market: Marketplace
  platform: Platform
  web: WebSide
  settings: Record<string, string>
  stop(): Promise<void>
}

const EVENTS = 3

for (const dialect of testDialects()) {
  const it = suite<Context>(`live streams and other processes on ${dialect}`)
  it.before.each(async (context) => {
    const market = await openMarketplace(dialect)
    market.clock.set(new Date().toISOString())
    const { url, folder, database } = market.bed.testDatabase
    const platform = { ...elsewhere(market.platform), clock: systemClock }
    const web = await openWebSide(platform)
    const subscription = subscribeSignals(platform, database)
    publishSignals(market.platform, database)
    await subscription.ready
    const settings = { DATABASE_URL: url, DATA_DIR: folder, APP_KEY }
    const stop = async () => {
      await web.close()
      await subscription.stop()
      await market.close()
    }
    Object.assign(context, { market, platform, web, settings, stop })
  })
  it.after.each(({ stop }) => stop())

  it('end after a suspension by the command line', async (context) => {
    const { market, platform, web, settings } = context
    const creator = await market.addCreator()
    const token = await logIn(platform, creator)
    const stream = follow(web.base, token)
    await stream.until(() => stream.events.length > 0)
    const { code, stderr } = await runHere(['users', 'suspend', creator.userId, '--yes'], settings)
    assert.is(code, 0, stderr)
    await stream.until(() => stream.refusal() === 'unauthenticated')
    const me = await fetch(`${web.base}/me`, { headers: { authorization: `Bearer ${token}` } })
    assert.is(me.status, 401)
  })

  if (dialect === 'postgresql') {
    it('show what a worker with its own connections does', async (context) => {
      const { market, platform, web, settings } = context
      const shop = await market.addShop()
      const link = await market.addLink(shop, await market.addCreator())
      const stream = follow(web.base, await logIn(platform, shop.actor))
      await stream.until(() => stream.events.length > 0)
      const environment = { ...settings, ROLES: 'worker', LOG_LEVEL: 'silent' }
      const worker = await startService({ environment })
      try {
        const sales = () => stream.received().filter((one) => one === 'sale accepted').length
        for (let count = 1; count <= EVENTS; count += 1) {
          market.clock.set(new Date().toISOString())
          await market.order(shop, link, 100_000)
          await stream.until(() => sales() === count)
        }
      } finally {
        stream.stop()
        await worker.stop()
      }
    })
  }

  it.run()
}
