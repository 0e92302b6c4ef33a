// The whole service in a process of its own, which measures how long its event loop is kept busy.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestDialect } from '../testkit/databases.ts'
import { addMerchant } from '../testkit/listings.ts'
import { measureLoopCpu } from '../testkit/loop-cpu.ts'
import { openServiceBed } from '../testkit/service-bed.ts'

export interface StallTarget {
  url: string
  domain: string
  secret: string
  processorSecret: string
}

export type Order = 'begin' | 'end' | 'stop'

/** The answer to `end`, once no event waits. */
export interface Stall {
  /** CPU milliseconds of the loop's thread in the longest turn of the loop. */
  cpuMs: number
  state: string
  reason: string | null
}

async function serve(dialect: TestDialect): Promise<void> {
  const bed = await openServiceBed(dialect, { LOG_LEVEL: 'error' })
  const { platform, processorSignature } = bed.service.app
  const { userId } = await addMerchant(platform)
  let meter = measureLoopCpu()

  const untilSettled = async () => {
    for (;;) {
      const event = await platform.database.reader
        .selectFrom('inbound_events')
        .select(['state', 'reason'])
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst()
      if (event && event.state !== 'pending') return event
      await sleep(5)
    }
  }
  process.on('message', async (order: Order) => {
    if (order === 'begin') {
      meter.stop()
      meter = measureLoopCpu()
      process.send?.('begun')
    } else if (order === 'end') {
      const { state, reason } = await untilSettled()
      process.send?.({ cpuMs: meter.stop(), state, reason } satisfies Stall)
    } else {
      await bed.close()
      process.disconnect()
    }
  })
  process.send?.({
    url: bed.url,
    domain: `s${userId}.myshopify.com`,
    secret: `secret-${userId}`,
    processorSecret: processorSignature.secrets[0] ?? '',
  } satisfies StallTarget)
}

await serve(process.argv[2] as TestDialect)
