import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { GENERIC_PROCESSOR_EVENTS } from '../processor/events.settings.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  closeOpenCycle,
  cyclesOf,
  eventsOf,
  giveDestination,
  type Marketplace,
  openMarketplace,
} from '../test/testkit/marketplace.ts'
import { addUser } from '../test/testkit/people.ts'
import { assertMapped, assertNone, pluck } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { openWatchedWorld } from '../test/testkit/watched-world.ts'
import { startLoops } from './loop.ts'
import {
  failureOf,
  lastRuns,
  noteFailed,
  noteFinished,
  noteStarted,
  type ScheduleRunRow,
} from './schedule-runs.service.ts'
import { startScheduler } from './scheduler.ts'
import { houseKeeping, startWorker } from './worker.ts'

interface Context {
  market: Marketplace
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
    const submitted = await eventually(
      async () => (await rowsOf(platform, 'payouts', { state: 'submitted' }))[0],
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
    const runs = await rowsOf(platform, 'schedule_runs', {}, 'name')
    assertMapped(runs, (run) => [run.name, run.finished_at !== null, JSON.parse(run.outcome ?? '{}')], [
      ['billing', true, { cycles: 0 }],
      ['payouts', true, { payouts: 1 }],
      ['pending-orders', true, { expired: 0 }],
      ['reconciliation', true, { compared: 0, differing: 0, unanswered: 0, complete: true }],
      ['seals', true, { ledgers: seals.at(-1)?.ledgers, digest: seals.at(-1)?.digest }],
    ])
    assert.is(seals.length, 2, 'one seal at each start, since money had moved')
  })

  it('do every chore immediately, and finish it before they stop', async () => {
    const { platform, clock, ...world } = await openWatchedWorld(dialect)
    for (const _ of [1, 2]) await giveDestination(platform, (await addUser(platform, 'creator')).userId)
    clock.pass(MINUTE)
    await startLoops(platform, houseKeeping(platform)).stop()
    assert.is((await world.flags('shared_iban')).length, 1)
    await world.close()
  })

  it('repeat a run that met an outage of the database', async ({ market }) => {
    const { platform, processor, clock } = market
    const shop = await market.addShop()
    await market.order(shop, await market.addLink(shop, await market.addCreator()), 900_000)
    await market.drainUntilIdle()
    clock.set('2026-12-01T00:00:00.000Z')
    let isAway = true
    let refused = 0
    const transaction: typeof platform.database.transaction = async (work) => {
      if (!isAway) return platform.database.transaction(work)
      refused += 1
      throw new Error('the database is away')
    }
    const database = Object.assign(Object.create(platform.database), { transaction })
    const scheduler = startScheduler({ ...platform, database }, processor, { retryMs: 5 })
    await eventually(() => refused > 10)
    assert.is((await cyclesOf(platform, shop.merchantId))[0]?.state, 'open')
    isAway = false
    await eventually(async () => (await cyclesOf(platform, shop.merchantId))[0]?.state === 'closed')
    await scheduler.stop()
  })

  it('make up a run whose moment passed while they stood still, once', async ({ market }) => {
    const { platform, processor } = market
    const shop = await market.addShop()
    await market.order(shop, await market.addLink(shop, await market.addCreator()), 900_000)
    await market.drainUntilIdle()
    await closeOpenCycle(platform, shop)
    await market.drainUntilIdle()
    for (const invoice of processor.invoices) invoice.status = 'paid'
    const ended: unknown[] = []
    const scheduled = () => {
      const note = (facts: object) => void ('job' in facts && ended.push(facts.job))
      const log = { ...platform.log, info: note, debug: note } as typeof platform.log
      return startScheduler({ ...platform, log }, processor)
    }
    const settled = async (count: number) => {
      while (ended.length < count) await setImmediate()
    }
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: platform.clock.now() })
    try {
      const first = scheduled()
      await settled(5)
      const second = scheduled()
      // The reconciliation is not due again.
      await settled(9)
      market.clock.pass(3 * DAY + 20 * MINUTE)
      mock.timers.setTime(platform.clock.now())
      mock.timers.tick(0)
      await settled(14)
      await Promise.all([first.stop(), second.stop()])
      assert.equal(ended.slice(9).sort(), ['billing', 'payouts', 'pending-orders', 'reconciliation', 'seals'])
      const runs = await lastRuns(platform)
      assertNone(runs, ({ started_at }) => started_at !== platform.clock.now())
      const reconciled = runs.find(({ name }) => name === 'reconciliation')?.outcome ?? ''
      assert.equal(JSON.parse(reconciled), { compared: 1, differing: 1, unanswered: 0, complete: true })
    } finally {
      mock.timers.reset()
    }
  })

  it('record why a run failed, until it is repeated', async ({ platform }) => {
    const failure = async () => failureOf((await lastRuns(platform))[0] as ScheduleRunRow)
    await noteStarted(platform, 'billing')
    assert.is(await failure(), null)
    await noteFailed(platform, 'billing', 'the disk is full')
    assert.is(await failure(), 'the disk is full')
    await noteStarted(platform, 'billing')
    assert.is(await failure(), null)
    await noteFinished(platform, 'billing', { cycles: 0 })
    await noteFailed(platform, 'billing', 'too late')
    assert.is(await failure(), null)
  })

  it('start no job that is switched off', async () => {
    const settings = { SCHEDULE_BILLING: 'off', SCHEDULE_PAYOUTS: 'off', SCHEDULE_RECONCILIATION: 'off' }
    const off = await openMarketplace(dialect, settings)
    await startScheduler(off.platform, off.processor).stop()
    const runs = await rowsOf(off.platform, 'schedule_runs', {}, 'name')
    assert.equal(pluck(runs, 'name'), ['pending-orders', 'seals'], 'which no setting switches off')
    await off.close()
  })

  it.run()
}
