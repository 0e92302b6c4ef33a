import { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import { failureText, type HttpAnswer, type ProcessorApi } from '../http-exchange.ts'
import { SAFEPAY_EVENT_TYPES } from './safepay-events.ts'

/** What an operator asks Safepay about the account itself. Failures are thrown with one line that says what to do. */
export class SafepayRefusal extends Error {
  /** The setting that is wrong, if the answer shows it. */
  readonly setting: string | null
  constructor(message: string, setting: string | null = null) {
    super(message)
    this.name = 'SafepayRefusal'
    this.setting = setting
  }
}

const eventFilter = z
  .string()
  .transform((text) => z.array(z.string()).safeParse(jsonOrNull(text)).data ?? null)

/** `event_filter_json` is null when the answer does not show it, `secret` unless it is created or rotated. */
const endpointSchema = z.object({
  token: z.string().min(1).max(200),
  url: z.string(),
  enabled: z.boolean().default(true),
  event_filter_json: eventFilter.nullish(),
  secret: z.string().min(1).nullish(),
})
type WebhookEndpoint = z.infer<typeof endpointSchema>
const listed = z.object({ data: z.object({ endpoints: z.array(endpointSchema).nullish() }) })
const changed = z.object({ data: z.object({ endpoint: endpointSchema, secret: z.string().nullish() }) })

/**
 * Checks the key, the aggregator and the merchant. Returns how far Safepay's clock is ahead of ours, ms; `null` when its answers have no
 * date.
 */
export async function checkCredentials(api: ProcessorApi, merchantId: string): Promise<number | null> {
  const answer = await ask(api, { path: 'ledger/accounts' })
  const { status } = answer
  if (status === 401 || status === 403) throw new SafepayRefusal(api.describe(answer), 'SAFEPAY_SECRET_KEY')
  // Of a wrong address, the answer is not in Safepay's form.
  if (status === 404 && answer.body !== null) {
    throw new SafepayRefusal(api.describe(answer), 'SAFEPAY_AGGREGATOR_ID')
  }
  if (status !== 200 || answer.body === null) {
    const detail = status === 200 ? 'answered 200 without JSON' : api.describe(answer)
    throw new SafepayRefusal(detail, 'SAFEPAY_URL')
  }
  const merchant = await ask(api, { path: `merchants/${encodeURIComponent(merchantId)}` })
  if (merchant.status === 404 || merchant.status === 400) {
    throw new SafepayRefusal(api.describe(merchant), 'SAFEPAY_MERCHANT_ID')
  }
  const date = Date.parse(answer.date ?? '')
  return Number.isNaN(date) ? null : date - Date.now()
}

export async function webhookEndpoints(api: ProcessorApi): Promise<WebhookEndpoint[]> {
  const { data } = await read(api, { path: 'webhooks', query: { limit: '100', offset: '0' } }, listed)
  return data.endpoints ?? []
}

const REGISTER = 'Run "affiliate processor register-webhook".'
const SET_SECRET =
  'Set the secret that the last registration printed, or make a new one with "affiliate processor register-webhook --rotate".'

/** What is wrong with the registration of our address, and what to do; `null` if nothing is. */
export function endpointProblem(
  endpoints: readonly WebhookEndpoint[],
  url: string,
  secrets: readonly string[],
): { detail: string; mend: string } | null {
  const endpoint = endpoints.find((one) => one.url === url)
  if (!endpoint) return { detail: `no webhook endpoint is registered for ${url}`, mend: REGISTER }
  const what = `the webhook endpoint for ${url}`
  if (!endpoint.enabled) return { detail: `${what} is disabled`, mend: REGISTER }
  const missing = missingTypes(endpoint)
  if (missing.length > 0) return { detail: `${what} does not get ${missing.join(', ')}`, mend: REGISTER }
  if (!endpoint.secret || secrets.includes(endpoint.secret)) return null
  return { detail: `PROCESSOR_WEBHOOK_SECRETS lacks the secret of ${what}`, mend: SET_SECRET }
}

function missingTypes({ event_filter_json: types }: WebhookEndpoint): string[] {
  return types ? SAFEPAY_EVENT_TYPES.filter((type) => !types.includes(type)) : []
}

export interface Registration {
  /** `kept`: it was as it should be. */
  change: 'created' | 'updated' | 'rotated' | 'kept'
  endpoint: WebhookEndpoint
  /** The new signing secret; `null` when it did not change. */
  secret: string | null
}

/** Makes sure that Safepay sends our events to `url`, and gives the endpoint a new secret with `rotate`. */
export async function registerWebhook(
  api: ProcessorApi,
  { url, rotate }: { url: string; rotate: boolean },
): Promise<Registration> {
  const body = { url, event_types: SAFEPAY_EVENT_TYPES, enabled: true }
  const known = (await webhookEndpoints(api)).find((endpoint) => endpoint.url === url)
  if (!known) {
    const request = { path: 'webhooks', body: { ...body, description: 'affiliate marketplace' } }
    return { change: 'created', ...(await withSecret(api, { method: 'POST', ...request })) }
  }
  const path = `webhooks/${encodeURIComponent(known.token)}`
  const isRight = known.enabled && !!known.event_filter_json && missingTypes(known).length === 0
  if (!isRight) await read(api, { method: 'PUT', path, body }, changed)
  if (rotate) {
    return { change: 'rotated', ...(await withSecret(api, { method: 'PUT', path: `${path}/rotate` })) }
  }
  return { change: isRight ? 'kept' : 'updated', endpoint: known, secret: null }
}

type Request = Parameters<ProcessorApi['send']>[0]

async function withSecret(api: ProcessorApi, request: Request) {
  const { endpoint, secret } = (await read(api, request, changed)).data
  const found = secret ?? endpoint.secret
  if (!found) throw new SafepayRefusal('answered without the secret of the webhook endpoint')
  return { endpoint, secret: found }
}

function ask(api: ProcessorApi, request: Request): Promise<HttpAnswer> {
  return api.send(request).catch((error: unknown) => {
    throw new SafepayRefusal(failureText(error), 'SAFEPAY_URL')
  })
}

async function read<Body>(api: ProcessorApi, request: Request, schema: z.ZodType<Body>): Promise<Body> {
  const answer = await ask(api, request)
  if (answer.status !== 200 && answer.status !== 201) throw new SafepayRefusal(api.describe(answer))
  const parsed = schema.safeParse(answer.body)
  if (parsed.success) return parsed.data
  throw new SafepayRefusal(
    `answered in an unknown form (${parsed.error.issues[0]?.path.join('.') || 'body'})`,
  )
}
