import { checkAppKey } from '../../platform/crypto/key-mark.ts'
import { createIds } from '../../platform/ids.ts'
import type { TestDialect } from './databases.ts'
import { addCredit } from './journal-attacks.ts'
import { openMarketplace } from './marketplace.ts'
import { TESTBED_KEY } from './testbed.ts'

export type FilledMarket = Awaited<ReturnType<typeof openFilledMarket>>

/**
 * A marketplace that has sold and paid out, with its key's mark, as a service leaves it: with rows in the tables of money, clicks, credits
 * and encrypted values, and two payouts on their way. `appKey` is APP_KEY, in base64.
 */
export async function openFilledMarket(dialect: TestDialect) {
  const market = await openMarketplace(dialect, {}, createIds)
  const { platform, bed } = market
  await checkAppKey(platform.database, platform.vault)
  const shop = await market.addShop('kurta')
  for (const name of ['ayesha', 'bilal']) {
    const link = await market.addLink(shop, await market.addCreator(name))
    await market.earn(shop, link, 800_000)
    market.clock.pass(1000)
  }
  await addCredit(platform, shop.merchantId)
  await market.payOut()
  const appKey = TESTBED_KEY.toString('base64')
  return { ...bed.testDatabase, market, shop, appKey, close: () => market.close() }
}
