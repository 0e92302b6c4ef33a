import { startSandbox } from '../../processor/sandbox/start-sandbox.ts'

const API_KEY = 'key-of-the-processor'
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

export interface Outside {
  /** Where the server takes webhooks, or took them last; `null` before its first start. */
  webhookUrl(): string | null
  /** Epoch ms. */
  now(): number
}

/** A processor in the process of the proof, which outlives the server, and the settings of a server that uses it. */
export async function openOutsideProcessor({ webhookUrl, now }: Outside) {
  const sandbox = await startSandbox({
    databasePath: ':memory:',
    host: '127.0.0.1',
    port: 0,
    apiKey: API_KEY,
    webhookSecret: WEBHOOK_SECRET,
    webhookUrl,
    now,
    random: () => 0.5,
    retryBaseMs: 20,
  })
  const settings = {
    PROCESSOR: 'http',
    PROCESSOR_URL: sandbox.url,
    PROCESSOR_API_KEY: API_KEY,
    PROCESSOR_WEBHOOK_SECRETS: WEBHOOK_SECRET,
  }
  return { sandbox, settings }
}
