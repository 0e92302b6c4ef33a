import { randomUUID } from 'node:crypto'
import { request } from 'undici'
import { openApp } from '../../server/app.ts'
import type { Config } from '../../server/platform/config.ts'
import { printable } from '../../server/platform/printable.ts'
import { type Finding, type Found, fail, info, ok, warn, wordsOf } from './finding.ts'
import { examineSafepay } from './safepay.ts'

type Environment = Record<string, string | undefined>

/** Asks the processor for an invoice that does not exist: it must answer that it has none. */
export async function examineProcessor(environment: Environment, config: Config): Promise<Found> {
  if (config.PROCESSOR === 'safepay-raast') return examineSafepay(config)
  try {
    const app = await openApp({ create: false, readOnly: true, environment, logLevel: 'silent' })
    try {
      const answer = await app.processor.findInvoices({ reference: randomUUID(), attemptIds: [randomUUID()] })
      if (answer.kind === 'found') return ok('processor', 'answers look-ups')
      return unreachable(app.platform.config, answer.detail)
    } finally {
      await app.close()
    }
  } catch (error) {
    return fail('processor', wordsOf(error), 'Correct the settings that begin with PROCESSOR.')
  }
}

function unreachable({ PROCESSOR }: Config, detail: string): Finding {
  if (PROCESSOR === 'sandbox') {
    return warn(
      'processor',
      `the sandbox does not answer: ${detail}`,
      'It runs inside the service: "affiliate serve".',
    )
  }
  return fail(
    'processor',
    detail,
    'See PROCESSOR_URL and PROCESSOR_API_KEY, and that this machine reaches it.',
  )
}

const WITHIN_MS = 3000

export async function examineWebhooks(config: Config): Promise<Found> {
  const base =
    config.PUBLIC_BASE_URL ??
    `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${config.PORT}`
  return [
    examineAddress(config, base),
    examineMetrics(config),
    examineProxies(config),
    info('webhooks', `stores (orders/paid) send to ${base}/webhooks/store-sales`),
    info('webhooks', `the processor sends to ${base}/webhooks/processor`),
    await examineService(base, config.PUBLIC_BASE_URL !== undefined),
  ]
}

export function examineAddress({ NODE_ENV, PUBLIC_BASE_URL }: Config, base: string): Finding {
  const { protocol, hostname } = new URL(base)
  const local = /^(localhost|127\.|\[::1\]|0\.0\.0\.0)/.test(hostname)
  if (protocol === 'https:' && !local) return ok('webhooks', `the public address is ${base}`)
  const detail = PUBLIC_BASE_URL
    ? `PUBLIC_BASE_URL is ${base}: stores and visitors outside this machine need an https address`
    : `PUBLIC_BASE_URL is not set: links and webhooks are for ${base}`
  const mend = 'Set PUBLIC_BASE_URL to the https address that leads to this service.'
  return NODE_ENV === 'production' ? fail('webhooks', detail, mend) : warn('webhooks', detail, mend)
}

/** In production only: elsewhere `/metrics` is open to this machine. */
export function examineMetrics({ NODE_ENV, METRICS_TOKEN, ROLES }: Config): Found {
  if (NODE_ENV !== 'production' || !ROLES.includes('web')) return null
  if (METRICS_TOKEN !== undefined) return ok('metrics', '/metrics is read with METRICS_TOKEN')
  return warn(
    'metrics',
    '/metrics is disabled: METRICS_TOKEN is not set',
    'Set METRICS_TOKEN to at least 16 random characters, and send it as a bearer token.',
  )
}

/** Which addresses may name the client, where that deserves a look. */
export function examineProxies({ TRUST_PROXY }: Config): Found {
  if (TRUST_PROXY === 'true') {
    return warn(
      'proxies',
      'TRUST_PROXY=true lets every client choose the address that rate limits count; production refuses it',
      'Set TRUST_PROXY to the number of proxies in front (such as 1) or to their addresses.',
    )
  }
  if (typeof TRUST_PROXY !== 'number') return null
  const proxies = TRUST_PROXY === 1 ? '1 proxy' : `${TRUST_PROXY} proxies`
  return info('proxies', `${proxies} in front: this port must not be reachable past them`)
}

async function examineService(base: string, isPublic: boolean): Promise<Finding> {
  try {
    const { statusCode, body } = await request(`${base}/readyz`, { signal: AbortSignal.timeout(WITHIN_MS) })
    const answer = await body.text()
    if (statusCode === 200) return ok('service', `${base} is ready`)
    return fail(
      'service',
      `${base}/readyz answers ${statusCode}: ${printable(detailOf(answer))}`,
      'See its log; database and migrations come first.',
    )
  } catch (error) {
    const mend = isPublic
      ? 'Start the service, and see that PUBLIC_BASE_URL leads to it.'
      : 'Start it with "affiliate serve".'
    return warn('service', `${base} does not answer: ${wordsOf(error)}`, mend)
  }
}

function detailOf(answer: string): string {
  try {
    return String((JSON.parse(answer) as { detail?: unknown }).detail)
  } catch {
    return answer.slice(0, 200)
  }
}
