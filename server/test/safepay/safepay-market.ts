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

/** The real adapter. */
export function safepayClient(
  url: string | (() => string),
  now: () => number,
  payoutEventUnit: 'rupees' | 'paisa' = 'rupees',
) {
  return createSafepayProcessor({
    url,
    aggregatorId: AGGREGATOR_ID,
    merchantId: MERCHANT_ID,
    secretKey: SECRET_KEY,
    payoutEventUnit,
    timeoutMs: 60_000,
    now,
  })
}

export type SafepayWorld = Awaited<ReturnType<typeof openSafepayWorld>>

/** Safepay's double and the real adapter around a marketplace. */
export async function openSafepayWorld(market: Marketplace, payoutEventUnit: 'rupees' | 'paisa' = 'rupees') {
  const double = await SafepayDouble.open()
  double.now = () => market.clock.now()
  const processor = safepayClient(double.url, () => market.clock.now(), payoutEventUnit)
  const { platform } = market
  const parts: WorkerParts = { platform, processor, eventRules: safepayEventRules(payoutEventUnit) }
  const drain = () => drainUntilIdle(parts)
  return {
    double,
    parts,
    drain,
    /** Puts its events into the inbox, under their ids, and applies them. */
    async tell(events: readonly SafepayEvent[]): Promise<void> {
      for (const event of events) await market.processorSends(event, event.identifier)
      await drain()
    },
    /** An order, its closed cycle and the request for the payment; answers the cycle's id. */
    async invoice(shop: Shop, order: () => Promise<unknown>): Promise<string> {
      await giveBillingAccount(platform, shop.merchantId)
      await order()
      await drain()
      const id = await closeOpenCycle(platform, shop)
      await drain()
      return id
    },
    async close(): Promise<void> {
      await processor.close()
      await double.close()
    },
  }
}
