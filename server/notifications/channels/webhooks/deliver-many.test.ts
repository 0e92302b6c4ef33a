// proof only
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as assert from 'uvu/assert'
import { startLoops } from '../../../jobs/loop.ts'
import { webhookLoops } from '../../../jobs/worker.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { openWebhookReceiver } from '../../../test/testkit/webhook-receiver.ts'
import { type NewEvent, publishEvents } from '../../outbox.service.ts'
import { createEndpoint } from './endpoints.service.ts'

const RECEIVER = fileURLToPath(new URL('../../../test/testkit/counting-receiver.ts', import.meta.url))
const DELIVERIES = 10_000
/** In use after a collection, over what was in use before the first delivery. Garbage depends on the machine. */
const MOST_BYTES = 100 * 1024 * 1024
const BATCH = 1000
/** The pause between two garbage collections, as a multiple of the time that the last one took: on a slow machine they must leave time for deliveries. */
const PAUSE_AFTER = 20
/** About the size of a sale. */
const DATA = { text: 'x'.repeat(700) }

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function bytesInUse(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function publishMany(platform: Platform, { userId }: Actor, count: number): Promise<void> {
  for (let done = 0; done < count; done += BATCH) {
    const events = Array.from(
      { length: Math.min(BATCH, count - done) },
      (): NewEvent => ({
        type: 'payout.paid',
        accountId: userId,
        subjectId: platform.ids.next(),
        data: DATA,
      }),
    )
    await platform.database.transaction((tx) => publishEvents(platform, tx, events))
  }
}

async function openCounter(expected: number): Promise<{ process: ChildProcess; url: string }> {
  const child = fork(RECEIVER, [String(expected)])
  const [{ port }] = await once(child, 'message')
  return { process: child, url: `http://127.0.0.1:${port}/hooks` }
}

for (const { it, dialect } of marketSuites('many webhook deliveries')) {
  it(`${DELIVERIES} reach a fast receiver in bounded memory`, async ({ platform, market }) => {
    const dead = await openWebhookReceiver()
    dead.answer = () => {}
    const stuck = await market.addCreator(undefined, false)
    const fields = { events: ['payout.paid'], description: '' }
    await createEndpoint(platform, stuck, { ...fields, url: dead.url })
    await publishMany(platform, stuck, BATCH)
    const counter = await openCounter(DELIVERIES)
    const owner = await market.addCreator(undefined, false)
    await createEndpoint(platform, owner, { ...fields, url: counter.url })
    await publishMany(platform, owner, DELIVERIES)

    const before = bytesInUse()
    let most = before
    let meter: NodeJS.Timeout | undefined
    const measure = () => {
      const begun = performance.now()
      most = Math.max(most, bytesInUse())
      meter = setTimeout(measure, PAUSE_AFTER * (performance.now() - begun))
    }
    measure()
    const begun = performance.now()
    const loops = startLoops(platform, webhookLoops(platform))
    await once(counter.process, 'message')
    const took = performance.now() - begun
    clearTimeout(meter)
    dead.close()
    await loops.stop()
    counter.process.disconnect()
    const undelivered = await platform.database.reader
      .selectFrom('webhook_deliveries')
      .innerJoin('webhook_endpoints', 'webhook_endpoints.id', 'endpoint_id')
      .select('webhook_deliveries.id')
      .where('account_id', '=', owner.userId)
      .where('state', '<>', 'delivered')
      .execute()
    assert.equal(undelivered, [])
    const megabytes = (most - before) / 2 ** 20
    console.log(
      `\nsize: webhooks on ${dialect}: ${DELIVERIES} deliveries in ${(took / 1000).toFixed(1)} s, ${megabytes.toFixed(0)} MB more`,
    )
    assert.ok(most - before < MOST_BYTES, `${Math.round(megabytes)} MB`)
  })

  it.run()
}
