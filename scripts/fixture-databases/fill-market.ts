import { join } from 'node:path'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { enforceClickRetention } from '../../server/clicks/click-retention.service.ts'
import { startExport } from '../../server/exports/exports.service.ts'
import { OPERATOR } from '../../server/moderation/audit.service.ts'
import { checkAppKey } from '../../server/platform/crypto/app-key-check.ts'
import { simulatedIds } from '../../server/test/simulation/simulated-ids.ts'
import type { TestDatabaseOptions, TestDialect } from '../../server/test/testkit/databases.ts'
import { type Marketplace, openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { DAY } from '../../server/test/testkit/testbed.ts'
import { IBANS, MarketActions } from './market-actions.ts'

/**
 * A market with rows in every table, made by the services as they are used between September and November 2026. The caller closes it.
 */
export async function fillMarket(
  dialect: TestDialect,
  folder: string,
  options: TestDatabaseOptions = {},
): Promise<Marketplace> {
  const market = await openMarketplace(dialect, { DATA_DIR: join(folder, 'data') }, simulatedIds, options)
  market.clock.set('2026-09-14T06:00:00.000Z')
  await checkAppKey(market.platform.database, market.platform.vault)
  await runScenario(market)
  return market
}

/** September to November 2026 in a small market. */
async function runScenario(market: Marketplace): Promise<void> {
  const act = new MarketActions(market)
  const { clock } = market
  const { userId: adminId } = await act.admin('operator@fixture.example')
  const kurta = await act.merchant('kurta')
  const shoes = await act.merchant('shoes')
  const tea = await act.merchant('tea')
  const ayesha = await act.creator('ayesha', IBANS.ayesha)
  const bilal = await act.creator('bilal', IBANS.bilal)
  const chand = await act.creator('chand', null)
  await act.stores(kurta)

  const links = {
    ayeshaKurta: await act.link(kurta, ayesha, { title: 'Lawn kurta' }),
    bilalKurta: await act.link(kurta, bilal, { title: 'Cotton kurta', product_ids: ['8123456789012'] }),
    ayeshaShoes: await act.link(shoes, ayesha, {
      title: 'چمڑے کی چپل',
      category: 'Shoes',
      niche: 'Leather',
    }),
    bilalTea: await act.link(tea, bilal, { title: 'Kashmiri tea', category: 'Food', niche: 'Tea' }),
    chandTea: await act.link(tea, chand, { title: 'Green tea', commission_rate: 3500 }, adminId),
  }
  await act.coupons(shoes, links.ayeshaShoes)
  await act.billingAccount(shoes)
  await act.webhookEndpoint(kurta)
  await act.turnMailOff(ayesha)
  await act.offersInOtherStates(kurta, chand, adminId)

  // September: sales of every merchant, and orders that are rejected, repeated or unreadable.
  for (const [shop, link, price] of [
    [kurta, links.ayeshaKurta, 2_000_000],
    [kurta, links.bilalKurta, 1_500_000],
    [shoes, links.ayeshaShoes, 900_000],
    [tea, links.bilalTea, 1_200_000],
    [tea, links.chandTea, 450_000],
  ] as const) {
    await act.sell(shop, link, price)
    await act.sell(shop, link, price + 12_345)
  }
  await act.clicksOfEveryKind(links.ayeshaKurta)
  await act.ordersThatAreNotAccepted(kurta, links.ayeshaKurta, ayesha)
  await act.sellUnpaidFirst(kurta, links.ayeshaKurta, 700_000)
  await act.sellOnOwnHost(kurta, links.bilalKurta, 650_000)
  await act.sellByReplay(kurta, links.ayeshaKurta, 550_000)
  await act.seal()

  // October: the cycles of September close. One invoice is refused and issued again, all are paid.
  await act.grantCredit(kurta, 'C-2026-09-1', 50_000)
  clock.set('2026-10-01T00:30:00.000Z')
  market.processor.answers = ['refuse']
  await act.scheduled('billing', async () => ({
    cycles: (await closeDueCycles(market.platform)).length,
  }))
  await market.drainUntilIdle()
  await act.reissueRefused()
  for (const shop of [kurta, shoes, tea]) await act.pay(shop)

  // Payouts: ayesha's is paid; bilal's fails, is paid out again, and that payout is refused and sent again.
  await act.payOut()
  await act.settle(ayesha, 'confirmed')
  await act.settle(bilal, 'failed')
  await act.replaceDestination(bilal)
  clock.pass(2 * DAY)
  market.processor.answers = ['refuse']
  await act.payOut()
  await act.retryRefusedPayouts()
  await act.settle(bilal, 'confirmed')
  await act.seal()

  // October's sales; kurta pays in November, shoes and tea do not.
  clock.set('2026-10-20T09:00:00.000Z')
  await act.sell(kurta, links.ayeshaKurta, 1_700_000)
  await act.sell(kurta, links.bilalKurta, 1_300_000)
  await act.sell(shoes, links.ayeshaShoes, 800_000)
  await act.sell(tea, links.chandTea, 600_000)
  clock.set('2026-11-01T00:30:00.000Z')
  await act.scheduled('billing', async () => ({
    cycles: (await closeDueCycles(market.platform, { actor: OPERATOR })).length,
  }))
  await market.drainUntilIdle()
  await act.pay(kurta)
  await act.creditRequest(kurta)

  // Payouts of November: one is submitted, the other call ends with an unknown outcome.
  market.processor.answers = ['ok', 'drop']
  await act.payOut(OPERATOR)
  await act.reconcileDifferences()

  await act.exports(kurta.actor, ayesha)
  await act.suspensions(shoes, chand, adminId)

  // The present: open cycles, unpaid ones, a payout with an unknown outcome, events that wait, months of clicks ahead.
  clock.set('2026-11-21T10:00:00.000Z')
  market.processor.lookupsFail = true
  await act.login('ayesha')
  await act.sell(kurta, links.ayeshaKurta, 250_000)
  await act.watch()
  await act.resolveOneFlag(adminId)
  await act.distributeEvents()
  await act.seal()
  await enforceClickRetention(market.platform)
  await startExport(
    market.platform,
    { userId: kurta.merchantId, role: 'merchant' },
    {
      resource: 'clicks',
      format: 'ndjson',
      from: null,
      to: null,
    },
  )
  await market.order(kurta, links.ayeshaKurta, 333_300)
  await market.processorSays('billing.payment_confirmed', { invoice_id: 'inv_unknown' })
  await market.verify()
}
