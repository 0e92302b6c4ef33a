import { drainUntilIdle, type WorkerParts } from '../../jobs/worker.ts'
import { safepayEventRules } from '../../processor/safepay/safepay-events.ts'
import { createSafepayProcessor } from '../../processor/safepay/safepay-processor.ts'
import { closeOpenCycle, giveBillingAccount, type Marketplace, type Shop } from '../testkit/marketplace.ts'
import { AGGREGATOR_ID, MERCHANT_ID, SafepayDouble, type SafepayEvent, SECRET_KEY } from './safepay-double.ts'

/** The settings of a marketplace that bills and pays through Safepay. */
export const SAFEPAY_SETTINGS = {
  PROCESSOR: 'safepay-raast',
  SAFEPAY_AGGREGATOR_ID: AGGREGATOR_ID,
  SAFEPAY_MERCHANT_ID: MERCHANT_ID,
  SAFEPAY_SECRET_KEY: SECRET_KEY,
  PROCESSOR_WEBHOOK_SECRETS: Buffer.alloc(32, 5).toString('base64'),
}

/** Safepay's double and the real adapter around a marketplace. */
export interface SafepayWorld {
  double: SafepayDouble
  parts: WorkerParts
  drain(): Promise<void>
  /** Puts its events into the inbox, under their ids, and applies them. */
  tell(events: readonly SafepayEvent[]): Promise<void>
  /** An order, its closed cycle and the request for the payment; answers the cycle's id. */
  invoice(shop: Shop, order: () => Promise<unknown>): Promise<string>
  close(): Promise<void>
}

export async function openSafepayWorld(
  market: Marketplace,
  payoutEventUnit: 'rupees' | 'paisa' = 'rupees',
): Promise<SafepayWorld> {
  const double = await SafepayDouble.open()
  double.now = () => market.clock.now()
  const processor = createSafepayProcessor({
    url: double.url,
    aggregatorId: AGGREGATOR_ID,
    merchantId: MERCHANT_ID,
    secretKey: SECRET_KEY,
    payoutEventUnit,
    timeoutMs: 60_000,
    now: () => market.clock.now(),
  })
  const { platform } = market
  const parts = { platform, processor, eventRules: safepayEventRules(payoutEventUnit) }
  const world: SafepayWorld = {
    double,
    parts,
    drain: () => drainUntilIdle(parts),
    async tell(events) {
      for (const event of events) await market.processorSends(event, event.identifier)
      await world.drain()
    },
    async invoice(shop, order) {
      await giveBillingAccount(platform, shop.merchantId)
      await order()
      await world.drain()
      const id = await closeOpenCycle(platform, shop)
      await world.drain()
      return id
    },
    async close() {
      await processor.close()
      await double.close()
    },
  }
  return world
}
