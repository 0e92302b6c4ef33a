// proof only

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { marketSuites } from '../testkit/market-suites.ts'
import { eventsOf, type Marketplace, openFlagsOf, type Shop } from '../testkit/marketplace.ts'
import { assertNone, pluck } from '../testkit/pluck.ts'
import { PROOF_FORM, proofCount, proofDialects } from '../testkit/proof-size.ts'
import { MINUTE } from '../testkit/testbed.ts'
import { SHAPES } from './hostile-bodies.ts'
import type { PileWork } from './pile-worker.ts'

/** Events of 2 MiB, and the worker's heap in MB: too small for all bodies together. */
const PILE = proofCount('HOSTILE_PILE', 50)
const HEAP_MB = proofCount('HOSTILE_PILE_HEAP', 80)
const BYTES = 2 * 1024 * 1024
const WORKER = fileURLToPath(new URL('pile-worker.ts', import.meta.url))
const DEADLY = 'deadly'
const MAX_ATTEMPTS = 12
/** In an example the event has failed before. */
const DEATHS = PROOF_FORM ? MAX_ATTEMPTS : 2

for (const { it, dialect } of marketSuites<{ shop: Shop }>('a pile of events', {
  dialects: proofDialects(),
})) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  /** One worker's life; how it ended. */
  const runWorker = async (
    { bed, clock }: Marketplace,
    deadly: string | null,
    heapMb: number,
  ): Promise<{ end: number | NodeJS.Signals | null; stderr: string }> => {
    const work: PileWork = { databaseUrl: bed.testDatabase.url, now: clock.now(), deadly }
    const child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, WORKER, JSON.stringify(work)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const exit = once(child, 'exit')
    const stderr = await text(child.stderr)
    const [code, signal] = await exit
    return { end: signal ?? code, stderr }
  }

  it('is drained by a worker whose heap holds only a part of it', async ({ market, shop }) => {
    const shapes = Object.values(SHAPES)
    for (let index = 0; index < PILE; index += 1) {
      const make = shapes[index % shapes.length] as (typeof shapes)[number]
      await market.deliver(shop, make(BYTES), { deliveryId: `e${index}` })
    }
    const { end, stderr } = await runWorker(market, null, HEAP_MB)
    assert.is(end, 0, stderr.slice(-2000))
    const events = await eventsOf(market.platform)
    assertNone(events, ({ state, attempts }) => state === 'pending' || attempts !== 1)
    console.log(`\nsize: pile on ${dialect}: ${PILE} events of 2 MiB in a heap of ${HEAP_MB} MB`)
  })

  it('sets an event aside that kills each worker, and applies the others', async ({ market, shop }) => {
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 100_000)
    await market.deliver(shop, '{"id":7}', { deliveryId: DEADLY })
    await market.order(shop, link, 200_000)
    await market.platform.database.transaction((tx) =>
      tx
        .updateTable('inbound_events')
        .set({ attempts: MAX_ATTEMPTS - DEATHS })
        .where('delivery_id', '=', DEADLY)
        .execute(),
    )
    const ends: unknown[] = []
    for (let lives = 0; lives < DEATHS + 3 && ends.at(-1) !== 0; lives += 1) {
      ends.push((await runWorker(market, DEADLY, 512)).end)
      market.clock.pass(MINUTE)
    }
    assert.equal(ends, [...Array.from({ length: DEATHS }, () => 'SIGKILL'), 0])
    const events = await eventsOf(market.platform)
    assert.equal(pluck(events, 'state'), ['done', 'set_aside', 'done'])
    assert.is(events[1]?.attempts, MAX_ATTEMPTS)
    assert.equal(await openFlagsOf(market.platform), [`event_set_aside ${shop.storeId}:failed`])
    await market.verify()
  })

  it.run()
}
