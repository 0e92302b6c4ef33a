import { checkAppKey } from '../../platform/crypto/key-mark.ts'
import { createIds } from '../../platform/ids.ts'
import type { TestDatabase, TestDialect } from './databases.ts'
import { addCredit } from './journal-attacks.ts'
import { type Marketplace, openMarketplace, type Shop } from './marketplace.ts'
import { TESTBED_KEY } from './testbed.ts'

/** A marketplace that has sold and paid out, with its key's mark, as a service leaves it. */
export interface FilledMarket extends TestDatabase {
  market: Marketplace
  shop: Shop
  /** APP_KEY, in base64. */
  appKey: string
}

/** With rows in the tables of money, clicks, credits and encrypted values, and two payouts on their way. */
export async function openFilledMarket(dialect: TestDialect): Promise<FilledMarket> {
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
  return {
    ...bed.testDatabase,
    market,
    shop,
    appKey: TESTBED_KEY.toString('base64'),
    close: () => market.close(),
  }
}
