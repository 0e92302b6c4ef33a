import { GENERIC_PROCESSOR_EVENTS, type ProcessorEventRules } from '../../processor/events.settings.ts'
import { createHttpProcessor } from '../../processor/http-processor.ts'
import type { Processor } from '../../processor/processor.ts'
import { safepayEventRules } from '../../processor/safepay/safepay-events.ts'
import { SAFEPAY_SETTINGS, safepayClient } from '../safepay/safepay-market.ts'
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
    client: (url, now) => createHttpProcessor({ url, apiKey: 'sk_double', timeoutMs: 60_000, now }),
  },
  'safepay-raast': {
    settings: SAFEPAY_SETTINGS,
    eventRules: safepayEventRules('rupees'),
    wire: ({ platform }) => safepayWire(platform.database.reader),
    client: safepayClient,
  },
}
