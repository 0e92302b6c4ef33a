import { GENERIC_PROCESSOR_EVENTS, type ProcessorEventRules } from '../../processor/events.settings.ts'
import { createHttpProcessor } from '../../processor/http-processor.ts'
import type { Processor } from '../../processor/processor.ts'
import { safepayEventRules } from '../../processor/safepay/safepay-events.ts'
import { createSafepayProcessor } from '../../processor/safepay/safepay-processor.ts'
import { SAFEPAY_SETTINGS } from '../safepay/safepay-market.ts'
import { safepayWire } from '../safepay/safepay-wire.ts'
import type { Marketplace } from '../testkit/marketplace.ts'
import { GENERIC_WIRE, type Wire } from './wire.ts'

export const CONTRACTS = ['generic', 'safepay-raast'] as const
export type Contract = (typeof CONTRACTS)[number]

export interface ContractParts {
  settings: Record<string, string>
  eventRules: ProcessorEventRules
  wire(market: Marketplace): Wire
  client(url: () => string, now: () => number): Processor & { close(): Promise<void> }
}

/** The real clients, and how their contracts look to the double that misbehaves as planned. */
export const CONTRACT_PARTS: Record<Contract, ContractParts> = {
  generic: {
    settings: {},
    eventRules: GENERIC_PROCESSOR_EVENTS,
    wire: () => GENERIC_WIRE,
    client: (url, now) => createHttpProcessor({ url, apiKey: 'sk_double', timeoutMs: 10_000, now }),
  },
  'safepay-raast': {
    settings: SAFEPAY_SETTINGS,
    eventRules: safepayEventRules('rupees'),
    wire: ({ platform }) => safepayWire(platform.database.reader),
    client: (url, now) =>
      createSafepayProcessor({
        url,
        aggregatorId: SAFEPAY_SETTINGS.SAFEPAY_AGGREGATOR_ID,
        merchantId: SAFEPAY_SETTINGS.SAFEPAY_MERCHANT_ID,
        secretKey: SAFEPAY_SETTINGS.SAFEPAY_SECRET_KEY,
        payoutEventUnit: 'rupees',
        timeoutMs: 10_000,
        now,
      }),
  },
}
