import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { InboxRecorder, Receipt, ReceivedEvent } from '../inbox/intake.service.ts'
import { Refusal } from '../platform/refusal.ts'
import { decodeShopifyHmac } from '../shopify/signature.ts'
import { claimsForWebhook, findSigner } from '../stores/webhook-claims.service.ts'
import { endEmptyBodies } from './empty-bodies.ts'
import { type Answered, answerDirectly, refuseWith } from './hot-requests.ts'
import type { HttpApp } from './http-app.ts'
import { rawBodyUpTo, releaseBody } from './raw-body.ts'
import type { SecurityHeaders } from './security-headers.ts'
import { type Reservation, WebhookQuota } from './webhook-quota.ts'
import { WebhookRefusals } from './webhook-refusals.ts'

const BODY_LIMIT = 2 * 1024 * 1024
const MAX_HEADER_TEXT = 255
const STORE_ROUTE = '/webhooks/store-sales'
const PROCESSOR_ROUTE = '/webhooks/processor'

export interface WebhookApp extends HttpApp {
  headers: SecurityHeaders
  answeredOn(route: string): Answered
}

/** What receiving needs besides the app. */
interface Intake extends HttpApp {
  quota: WebhookQuota
  refusals: WebhookRefusals
}

/**
 * The two ways in for events. The head first, before a byte of the body is read; then the signature, on the raw bytes; then the
 * store's quota; then the inbox, on disk; then 200. What the event means is found out later, by the worker.
 */
export async function registerWebhooks(server: FastifyInstance, app: WebhookApp): Promise<void> {
  const { platform } = app
  const refusals = new WebhookRefusals(platform.log)
  const intake: Intake = { ...app, refusals, quota: new WebhookQuota(platform.config) }
  server.addHook('onClose', async () => refusals.flush())
  await server.register(async (scope) => {
    endEmptyBodies(scope)
    // Bytes, whatever the content type says: a body that was parsed and written again has another signature.
    scope.removeAllContentTypeParsers()
    const checkHead = (request: FastifyRequest) =>
      request.routeOptions.url === STORE_ROUTE
        ? checkStoreHead(intake, request)
        : checkProcessorHead(intake, request)
    // The type that nearly all say is named, too: for any other one the framework takes the text of it apart at each request.
    scope.addContentTypeParser(['application/json', '*'], rawBodyUpTo({ limit: BODY_LIMIT, checkHead }))
    takeEvents(scope, app, STORE_ROUTE, (request) => receiveStoreEvent(intake, request))
    takeEvents(scope, app, PROCESSOR_ROUTE, (request) => receiveProcessorEvent(intake, request))
  })
}

const RECEIVED = JSON.stringify({ received: true })

/** A route whose answer is that the event was received, once `receive` resolves. */
function takeEvents(
  scope: FastifyInstance,
  app: WebhookApp,
  route: string,
  receive: (request: FastifyRequest) => Promise<void>,
): void {
  const answer = answerDirectly(app.answeredOn(route), {
    ...app.headers.few,
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(RECEIVED.length),
  })
  scope.post(route, (request: FastifyRequest, reply: FastifyReply) => {
    receive(request)
      .then(() => answer(request, reply, { status: 200, headers: [], body: RECEIVED }))
      .catch((error: unknown) => refuseWith(reply, error))
  })
}

/** Refuses a delivery that no body can make valid: an unknown store, or a malformed signature. */
async function checkStoreHead(intake: Intake, request: FastifyRequest): Promise<void> {
  if (!decodeShopifyHmac(headerOf(request, HMAC_HEADER))) throw refuse(intake, request, 'no HMAC')
  const domain = domainOf(request)
  if (domain === undefined) throw refuse(intake, request, 'no shop domain')
  const claims = await claimsForWebhook(intake.platform, domain)
  if (claims.length === 0) throw refuse(intake, request, 'unknown shop domain')
}

const HMAC_HEADER = 'x-shopify-hmac-sha256'

const domainOf = (request: FastifyRequest) => headerOf(request, 'x-shopify-shop-domain')?.toLowerCase()

async function receiveStoreEvent(intake: Intake, request: FastifyRequest): Promise<void> {
  const { platform, inbox, quota } = intake
  const rawBody = bodyOf(request)
  const domain = domainOf(request)
  const claims = domain ? await claimsForWebhook(platform, domain) : []
  const store = await findSigner(claims, rawBody, headerOf(request, HMAC_HEADER))
  if (!store) throw refuse(intake, request, claims.length > 0 ? 'wrong HMAC' : 'unknown shop domain')
  const event: ReceivedEvent = {
    source: 'store',
    scope: store.storeId,
    deliveryId: headerOf(request, 'x-shopify-webhook-id') ?? hashOf(rawBody),
    topic: headerOf(request, 'x-shopify-topic') ?? null,
    triggeredAt: timeIn(headerOf(request, 'x-shopify-triggered-at')),
    rawBody,
  }
  const reservation = await reserve(quota, inbox, event)
  if (reservation) await recordReserved(inbox, event, reservation)
  releaseBody(rawBody)
}

/** `null` for a redelivery that came when the quota was used up: it is stored already, and that is the answer to it. */
async function reserve(
  quota: WebhookQuota,
  inbox: InboxRecorder,
  event: ReceivedEvent,
): Promise<Reservation | null> {
  try {
    return await quota.reserve(event.scope, event.rawBody.length)
  } catch (error) {
    if (error instanceof Refusal && (await inbox.isKnown(event))) return null
    throw error
  }
}

/** Only what was stored counts: a redelivery costs its store nothing, nor does what could not be written. */
async function recordReserved(
  inbox: InboxRecorder,
  event: ReceivedEvent,
  reservation: Reservation,
): Promise<void> {
  let receipt: Receipt = 'known'
  try {
    receipt = await inbox.record(event)
  } finally {
    if (receipt === 'known') await reservation.takeBack()
  }
}

/** Refuses what lacks the headers of the processor's signature scheme. */
function checkProcessorHead(intake: Intake, request: FastifyRequest): undefined {
  const missing = intake.processorSignature.scheme.requiredHeaders.find(
    (name) => request.headers[name] === undefined,
  )
  if (missing !== undefined) throw refuse(intake, request, `${missing} is missing`)
}

async function receiveProcessorEvent(intake: Intake, request: FastifyRequest): Promise<void> {
  const { platform, inbox, processorSignature } = intake
  const rawBody = bodyOf(request)
  const verdict = processorSignature.scheme.verify({
    headers: headersOf(request),
    rawBody,
    secrets: processorSignature.secrets,
    now: platform.clock.now(),
  })
  if (!verdict.ok) throw refuse(intake, request, verdict.reason)
  await inbox.record({
    source: 'processor',
    scope: 'processor',
    deliveryId: verdict.deliveryId ?? hashOf(rawBody),
    topic: null,
    rawBody,
  })
}

function bodyOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

/** A sender that gives no id of its own is told apart by what it sends. */
function hashOf(rawBody: Buffer): string {
  return `sha256:${createHash('sha256').update(rawBody).digest('hex')}`
}

/** One header as stored text; one that came several times or is out of bounds counts as absent. */
function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  if (typeof value !== 'string' || value === '' || value.length > MAX_HEADER_TEXT) return undefined
  return value.includes('\0') ? undefined : value
}

/** RFC 3339, as Shopify writes it; epoch ms, `null` for anything else. */
function timeIn(text: string | undefined): number | null {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}/.test(text)) return null
  const moment = Date.parse(text)
  return Number.isSafeInteger(moment) ? moment : null
}

function headersOf(request: FastifyRequest): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : value,
    ]),
  )
}

function refuse({ refusals }: Intake, request: FastifyRequest, reason: string): Refusal {
  const route = request.routeOptions.url ?? ''
  const domain = route === STORE_ROUTE ? (domainOf(request) ?? null) : null
  refusals.note({ requestId: request.id, route, domain, reason })
  return new Refusal('invalid_signature', 'Invalid webhook signature.')
}
