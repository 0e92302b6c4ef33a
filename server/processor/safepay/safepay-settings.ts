import type { Config } from '../../platform/config.ts'
import type { SafepayProcessorOptions } from './safepay-processor.ts'

/** The settings of `PROCESSOR=safepay-raast`, which `readConfig` requires. */
export function safepayOptions(config: Config): SafepayProcessorOptions {
  return {
    url: config.SAFEPAY_URL,
    aggregatorId: config.SAFEPAY_AGGREGATOR_ID ?? '',
    merchantId: config.SAFEPAY_MERCHANT_ID ?? '',
    secretKey: config.SAFEPAY_SECRET_KEY ?? '',
    payoutEventUnit: config.SAFEPAY_PAYOUT_EVENT_UNIT,
    timeoutMs: config.PROCESSOR_TIMEOUT_MS,
  }
}
