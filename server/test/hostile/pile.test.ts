// proof only

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { marketSuites } from '../testkit/market-suites.ts'
import { eventsOf } from '../testkit/marketplace.ts'
import { assertNone } from '../testkit/pluck.ts'
import { proofCount, proofDialects } from '../testkit/proof-size.ts'
import { SHAPES } from './hostile-bodies.ts'
import type { PileWork } from './pile-worker.ts'

/** Events of 2 MiB, and the worker's heap in MB: too small for all bodies together. */
const PILE = proofCount('HOSTILE_PILE', 50)
const HEAP_MB = proofCount('HOSTILE_PILE_HEAP', 80)
const BYTES = 2 * 1024 * 1024
const WORKER = fileURLToPath(new URL('pile-worker.ts', import.meta.url))

for (const { it, dialect } of marketSuites('a pile of events', { dialects: proofDialects() })) {
  it('is drained by a worker whose heap holds only a part of it', async ({ market, bed, clock }) => {
    const shop = await market.addShop()
    const shapes = Object.values(SHAPES)
    for (let index = 0; index < PILE; index += 1) {
      const make = shapes[index % shapes.length] as (typeof shapes)[number]
      await market.deliver(shop, make(BYTES), { deliveryId: `e${index}` })
    }
    const work: PileWork = { databaseUrl: bed.testDatabase.url, now: clock.now() }
    const args = [`--max-old-space-size=${HEAP_MB}`, WORKER, JSON.stringify(work)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    const exit = once(child, 'exit')
    const stderr = await text(child.stderr)
    const [code, signal] = await exit
    const end = signal ?? code
    assert.is(end, 0, stderr.slice(-2000))
    const events = await eventsOf(market.platform)
    assertNone(events, ({ state, attempts }) => state === 'pending' || attempts !== 1)
    console.log(`\nsize: pile on ${dialect}: ${PILE} events of 2 MiB in a heap of ${HEAP_MB} MB`)
  })

  it.run()
}
