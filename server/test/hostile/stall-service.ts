// The whole service in a process of its own, which measures how long its event loop is kept busy.
import type { TestDialect } from '../testkit/databases.ts'
import { eventually } from '../testkit/eventually.ts'
import { accessOf, addMerchant } from '../testkit/listings.ts'
import { measureLoopCpu } from '../testkit/loop-cpu.ts'
import type { StoreAccess } from '../testkit/orders.ts'
import { openServiceBed } from '../testkit/service-bed.ts'

export interface StallTarget extends StoreAccess {
  url: string
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
  const store = accessOf(await addMerchant(platform))
  let meter = measureLoopCpu()

  const latest = () =>
    platform.database.reader
      .selectFrom('inbound_events')
      .select(['state', 'reason'])
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst()
  process.on('message', async (order: Order) => {
    if (order === 'begin') {
      meter.stop()
      meter = measureLoopCpu()
      process.send?.('begun')
    } else if (order === 'end') {
      const settled = await eventually(async () => {
        const event = await latest()
        return event?.state !== 'pending' && event
      })
      process.send?.({ cpuMs: meter.stop(), ...settled } satisfies Stall)
    } else {
      await bed.close()
      process.disconnect()
    }
  })
  process.send?.({
    url: bed.url,
    ...store,
    processorSecret: processorSignature.secrets[0] ?? '',
  } satisfies StallTarget)
}

await serve(process.argv[2] as TestDialect)
