import { randomUUID } from 'node:crypto'
import { request } from 'undici'
import { openApp } from '../../server/app.ts'
import { type Config, SettingError } from '../../server/platform/config.ts'
import { printable } from '../../server/platform/printable.ts'
import { jsonOrNull } from '../../shared/json.ts'
import { about, type Finding, type Found, wordsOf } from './finding.ts'
import { examineSafepay } from './safepay.ts'

const processor = about('processor')
const webhooks = about('webhooks')
const metrics = about('metrics')
const proxies = about('proxies')
const service = about('service')

/** Asks the processor for an invoice that does not exist: it must answer that it has none. */
export async function examineProcessor(environment: NodeJS.ProcessEnv, config: Config): Promise<Found> {
  if (config.PROCESSOR === 'safepay-raast') return examineSafepay(config)
  if (config.PROCESSOR === 'manual') return processor.info('is worked by hand: "affiliate manual due"')
  try {
    const app = await openApp({ create: false, readOnly: true, environment, logLevel: 'silent' })
    try {
      const answer = await app.processor.findInvoices({ reference: randomUUID(), attemptIds: [randomUUID()] })
      if (answer.kind === 'found') return processor.ok('answers look-ups')
      if (config.PROCESSOR !== 'sandbox') {
        return processor.fail(
          answer.detail,
          'See PROCESSOR_URL and PROCESSOR_API_KEY, and that this machine reaches it.',
        )
      }
      const mend = 'It runs inside the service: "affiliate serve".'
      return processor.warn(`the sandbox does not answer: ${answer.detail}`, mend)
    } finally {
      await app.close()
    }
  } catch (error) {
    const isOther =
      error instanceof SettingError && !error.faults.some(({ name }) => /^(PROCESSOR|SANDBOX)/.test(name))
    if (isOther) return processor.info('is not asked until the other settings are corrected')
    return processor.fail(wordsOf(error), 'Correct the settings that begin with PROCESSOR.')
  }
}

const WITHIN_MS = 3000

export async function examineWebhooks(config: Config): Promise<Found> {
  const { PUBLIC_BASE_URL, HOST, PORT } = config
  const base = PUBLIC_BASE_URL ?? `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${PORT}`
  return [
    examineAddress(config, base),
    examineMetrics(config),
    examineProxies(config),
    webhooks.info(`stores (orders/paid) send to ${base}/webhooks/store-sales`),
    webhooks.info(`the processor sends to ${base}/webhooks/processor`),
    await examineService(base, PUBLIC_BASE_URL !== undefined),
  ]
}

export function examineAddress({ NODE_ENV, PUBLIC_BASE_URL }: Config, base: string): Finding {
  const { protocol, hostname } = new URL(base)
  const local = /^(localhost|127\.|\[::1\]|0\.0\.0\.0)/.test(hostname)
  if (protocol === 'https:' && !local) return webhooks.ok(`the public address is ${base}`)
  const detail = PUBLIC_BASE_URL
    ? `PUBLIC_BASE_URL is ${base}: stores and visitors outside this machine need an https address`
    : `PUBLIC_BASE_URL is not set: links and webhooks are for ${base}`
  const mend = 'Set PUBLIC_BASE_URL to the https address that leads to this service.'
  return NODE_ENV === 'production' ? webhooks.fail(detail, mend) : webhooks.warn(detail, mend)
}

/** In production only: elsewhere `/metrics` is open to this machine. */
export function examineMetrics({ NODE_ENV, METRICS_TOKEN, ROLES }: Config): Found {
  if (NODE_ENV !== 'production' || !ROLES.includes('web')) return null
  if (METRICS_TOKEN !== undefined) return metrics.ok('/metrics is read with METRICS_TOKEN')
  const mend = 'Set METRICS_TOKEN to at least 16 random characters, and send it as a bearer token.'
  return metrics.warn('/metrics is disabled: METRICS_TOKEN is not set', mend)
}

/** Which addresses may name the client, where that deserves a look. */
export function examineProxies({ TRUST_PROXY }: Config): Found {
  if (TRUST_PROXY === 'true') {
    return proxies.warn(
      'TRUST_PROXY=true lets every client choose the address that rate limits count; production refuses it',
      'Set TRUST_PROXY to the number of proxies in front (such as 1) or to their addresses.',
    )
  }
  if (typeof TRUST_PROXY !== 'number') return null
  const count = TRUST_PROXY === 1 ? '1 proxy' : `${TRUST_PROXY} proxies`
  return proxies.info(`${count} in front: this port must not be reachable past them`)
}

async function examineService(base: string, isPublic: boolean): Promise<Finding> {
  try {
    const { statusCode, body } = await request(`${base}/readyz`, { signal: AbortSignal.timeout(WITHIN_MS) })
    const answer = await body.text()
    if (statusCode === 200) return service.ok(`${base} is ready`)
    const problem = jsonOrNull(answer) as { detail?: unknown } | null
    const detail = printable(String(problem?.detail ?? answer.slice(0, 200)))
    const mend = 'See its log; database and migrations come first.'
    return service.fail(`${base}/readyz answers ${statusCode}: ${detail}`, mend)
  } catch (error) {
    const mend = isPublic
      ? 'Start the service, and see that PUBLIC_BASE_URL leads to it.'
      : 'Start it with "affiliate serve".'
    return service.warn(`${base} does not answer: ${wordsOf(error)}`, mend)
  }
}
