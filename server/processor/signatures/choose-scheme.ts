import { createHmacScheme, type HmacSettings } from './hmac.ts'
import { safepayRaast, safepayV2 } from './safepay.ts'
import type { SignatureScheme } from './scheme.ts'
import { standardWebhooks } from './standard-webhooks.ts'

export { type HmacSettings, hmacSettingsSchema } from './hmac.ts'
export type { SignatureScheme, SignatureVerdict, SignedRequest, SigningInput } from './scheme.ts'

export const SIGNATURE_SCHEMES = ['standard-webhooks', 'safepay-raast', 'safepay-v2', 'hmac'] as const

export type SignatureConfig =
  | { scheme: 'standard-webhooks' | 'safepay-raast' | 'safepay-v2' }
  | { scheme: 'hmac'; hmac: HmacSettings }

/** The scheme by which the processor signs its events (`PROCESSOR_SIGNATURE`). */
export function createSignatureScheme(config: SignatureConfig): SignatureScheme {
  switch (config.scheme) {
    case 'standard-webhooks':
      return standardWebhooks
    case 'safepay-raast':
      return safepayRaast
    case 'safepay-v2':
      return safepayV2
    case 'hmac':
      return createHmacScheme(config.hmac)
  }
}
