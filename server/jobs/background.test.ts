import * as assert from 'uvu/assert'
import { GENERIC_PROCESSOR_EVENTS } from '../processor/events.settings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, eventsOf, type Marketplace, openMarketplace } from '../test/testkit/marketplace.ts'
import { startScheduler } from './scheduler.ts'
import { startWorker } from './worker.ts'

interface Context {
  market: Marketplace
}

/** Resolves once `look` finds something. The test runner's time limit ends it otherwise. */
async function eventually<Found>(look: () => Promise<Found | null | undefined | false>): Promise<Found> {
  for (;;) {
    const found = await look()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

for (const { it, dialect } of marketSuites<Context>('worker and scheduler', { verify: true })) {
  it('bring an order to a payout by themselves, and stop cleanly', async ({ market }) => {
    const { platform, processor, clock } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    const worker = startWorker({ platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS })
    await market.order(shop, link, 900_000)
    const cycle = await eventually(async () => (await cyclesOf(platform, shop.merchantId))[0])
    clock.set('2026-12-01T00:00:00.000Z')
    const billing = startScheduler(platform, processor)
    await eventually(async () => (await cyclesOf(platform, shop.merchantId))[0]?.processor_invoice_id)
    await billing.stop()
    await market.confirmPayment(cycle.id)
    await eventually(async () => (await cyclesOf(platform, shop.merchantId))[0]?.state === 'charged')
    const payouts = startScheduler(platform, processor)
    const submitted = await eventually(async () =>
      platform.database.reader
        .selectFrom('payouts')
        .selectAll()
        .where('state', '=', 'submitted')
        .executeTakeFirst(),
    )
    await market.settlePayout(submitted.id, 'confirmed')
    await eventually(async () => (await eventsOf(platform)).every((event) => event.state === 'done'))
    await payouts.stop()
    await worker.stop()
    const seals = await platform.database.reader
      .selectFrom('ledger_seals as seal')
      .innerJoin('ledger_seal_heads as head', 'head.position', 'seal.position')
      .select((query) => ['seal.digest', query.fn.countAll<number>().as('ledgers')])
      .groupBy(['seal.position', 'seal.digest'])
      .orderBy('seal.position')
      .execute()
    const runs = await platform.database.reader
      .selectFrom('schedule_runs')
      .selectAll()
      .orderBy('name')
      .execute()
    assert.equal(
      runs.map((run) => [run.name, run.finished_at !== null, JSON.parse(run.outcome ?? '{}')]),
      [
        ['billing', true, { cycles: 0 }],
        ['payouts', true, { payouts: 1 }],
        ['reconciliation', true, { compared: 0, differing: 0, unanswered: 0, complete: true }],
        ['seals', true, { ledgers: seals.at(-1)?.ledgers, digest: seals.at(-1)?.digest }],
      ],
    )
    assert.is(seals.length, 2, 'one seal at each start, since money had moved')
  })

  it('start no job that is switched off', async () => {
    const off = await openMarketplace(dialect, {
      SCHEDULE_BILLING: 'off',
      SCHEDULE_PAYOUTS: 'off',
      SCHEDULE_RECONCILIATION: 'off',
    })
    await startScheduler(off.platform, off.processor).stop()
    const runs = await off.platform.database.reader.selectFrom('schedule_runs').select('name').execute()
    assert.equal(runs, [{ name: 'seals' }], 'which no setting switches off')
    await off.close()
  })

  it.run()
}
