import { z } from 'zod'
import { jsonOrNull } from '../../../shared/json.ts'
import { asFailure, type HttpAnswer } from '../http-exchange.ts'
import { describeError, type SafepayApi } from './safepay-api.ts'
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

export interface WebhookEndpoint {
  token: string
  url: string
  enabled: boolean
  /** `null` when the answer does not show them. */
  eventTypes: string[] | null
  /** Shown when it is created or rotated, and by some answers. */
  secret: string | null
}

const eventFilter = z
  .string()
  .transform((text) => z.array(z.string()).safeParse(jsonOrNull(text)).data ?? null)

const endpointSchema = z
  .object({
    token: z.string().min(1).max(200),
    url: z.string(),
    enabled: z.boolean().default(true),
    event_filter_json: eventFilter.nullish(),
    secret: z.string().min(1).nullish(),
  })
  .transform(
    ({ event_filter_json, secret, ...endpoint }): WebhookEndpoint => ({
      ...endpoint,
      eventTypes: event_filter_json ?? null,
      secret: secret ?? null,
    }),
  )
const listed = z.object({ data: z.object({ endpoints: z.array(endpointSchema).nullish() }) })
const changed = z.object({ data: z.object({ endpoint: endpointSchema, secret: z.string().nullish() }) })

/**
 * Checks the key, the aggregator and the merchant. Returns how far Safepay's clock is ahead of ours, ms; `null` when its answers have no
 * date.
 */
export async function checkCredentials(api: SafepayApi, merchantId: string): Promise<number | null> {
  const answer = await ask(() => api.get('ledger/accounts'))
  if (answer.status === 401 || answer.status === 403) {
    throw new SafepayRefusal(describeError(answer), 'SAFEPAY_SECRET_KEY')
  }
  // Of a wrong address, the answer is not in Safepay's form.
  if (answer.status === 404 && answer.body !== null) {
    throw new SafepayRefusal(describeError(answer), 'SAFEPAY_AGGREGATOR_ID')
  }
  if (answer.status !== 200 || answer.body === null) {
    const detail = answer.status === 200 ? 'answered 200 without JSON' : describeError(answer)
    throw new SafepayRefusal(detail, 'SAFEPAY_URL')
  }
  const merchant = await ask(() => api.get(`merchants/${encodeURIComponent(merchantId)}`))
  if (merchant.status === 404 || merchant.status === 400) {
    throw new SafepayRefusal(describeError(merchant), 'SAFEPAY_MERCHANT_ID')
  }
  const date = Date.parse(answer.date ?? '')
  return Number.isNaN(date) ? null : date - Date.now()
}

export async function webhookEndpoints(api: SafepayApi): Promise<WebhookEndpoint[]> {
  const answer = await ask(() => api.get('webhooks', { limit: '100', offset: '0' }))
  return read(answer, listed).data.endpoints ?? []
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
  if (!endpoint.enabled) return { detail: `the webhook endpoint for ${url} is disabled`, mend: REGISTER }
  const missing = missingTypes(endpoint)
  if (missing.length > 0) {
    return { detail: `the webhook endpoint for ${url} does not get ${missing.join(', ')}`, mend: REGISTER }
  }
  if (endpoint.secret !== null && !secrets.includes(endpoint.secret)) {
    return {
      detail: `PROCESSOR_WEBHOOK_SECRETS lacks the secret of the webhook endpoint for ${url}`,
      mend: SET_SECRET,
    }
  }
  return null
}

function missingTypes({ eventTypes }: WebhookEndpoint): string[] {
  return eventTypes === null ? [] : SAFEPAY_EVENT_TYPES.filter((type) => !eventTypes.includes(type))
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
  api: SafepayApi,
  { url, rotate }: { url: string; rotate: boolean },
): Promise<Registration> {
  const body = { url, event_types: SAFEPAY_EVENT_TYPES, enabled: true }
  const known = (await webhookEndpoints(api)).find((endpoint) => endpoint.url === url)
  if (!known) {
    const answer = await ask(() => api.post('webhooks', { ...body, description: 'affiliate marketplace' }))
    return { change: 'created', ...withSecret(answer) }
  }
  const path = `webhooks/${encodeURIComponent(known.token)}`
  const isRight = known.enabled && known.eventTypes !== null && missingTypes(known).length === 0
  if (!isRight) read(await ask(() => api.put(path, body)), changed)
  if (rotate) {
    return { change: 'rotated', ...withSecret(await ask(() => api.put(`${path}/rotate`))) }
  }
  return { change: isRight ? 'kept' : 'updated', endpoint: known, secret: null }
}

function withSecret(answer: HttpAnswer): { endpoint: WebhookEndpoint; secret: string } {
  const { endpoint, secret } = read(answer, changed).data
  const found = secret ?? endpoint.secret
  if (!found) throw new SafepayRefusal('answered without the secret of the webhook endpoint')
  return { endpoint, secret: found }
}

async function ask(send: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  try {
    return await send()
  } catch (error) {
    throw new SafepayRefusal(asFailure(error).message, 'SAFEPAY_URL')
  }
}

function read<Body>(answer: HttpAnswer, schema: z.ZodType<Body>): Body {
  if (answer.status !== 200 && answer.status !== 201) throw new SafepayRefusal(describeError(answer))
  const parsed = schema.safeParse(answer.body)
  if (parsed.success) return parsed.data
  throw new SafepayRefusal(
    `answered in an unknown form (${parsed.error.issues[0]?.path.join('.') || 'body'})`,
  )
}
