import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** `affiliate.env.example` as an operator fills it in, with invented values. */
export function filledExample(): Record<string, string> {
  const text = readFileSync(new URL('affiliate.env.example', import.meta.url), 'utf8')
  return parseEnv(fillIn(text)) as Record<string, string>
}

/** The text of an example with an invented value wherever one is to be replaced. */
export function fillIn(text: string): string {
  const secret = Buffer.alloc(32, 9)
  const own = { APP_KEY: secret.toString('base64'), METRICS_TOKEN: secret.toString('hex') }
  const whole = { ...own, PROCESSOR_WEBHOOK_SECRETS: `whsec_${secret.toString('base64')}` }
  return Object.entries(whole)
    .reduce((all, [name, value]) => all.replace(`\n${name}=replace\n`, `\n${name}=${value}\n`), text)
    .replaceAll('replace', 'chenab')
}
