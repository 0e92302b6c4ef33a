import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** `affiliate.env.example` as an operator fills it in, with invented values. */
export function filledExample(): Record<string, string> {
  const text = readFileSync(new URL('affiliate.env.example', import.meta.url), 'utf8')
  const secret = Buffer.alloc(32, 9)
  return {
    ...(parseEnv(text) as Record<string, string>),
    APP_KEY: secret.toString('base64'),
    METRICS_TOKEN: secret.toString('hex'),
    PROCESSOR_WEBHOOK_SECRETS: `whsec_${secret.toString('base64')}`,
  }
}
