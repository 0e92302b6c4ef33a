import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { claimsForWebhook, findSigner } from '../stores/webhook-claims.service.ts'
import { endEmptyBodies } from './empty-bodies.ts'
import { type Answered, answerDirectly, refuseWith } from './hot-requests.ts'
import type { HttpApp } from './http-app.ts'
import { giveBack, rawBodyUpTo } from './raw-body.ts'
import type { SecurityHeaders } from './security-headers.ts'

const BODY_LIMIT = 2 * 1024 * 1024
const MAX_HEADER_TEXT = 255

interface WebhookApp extends HttpApp {
  headers: SecurityHeaders
  answeredOn(route: string): Answered
}

/**
 * The two ways in for events. Signature first, on the raw bytes; then the inbox, on disk; then 200. What the event
 * means is found out later, by the worker: its sender never waits for that.
 */
export async function registerWebhooks(server: FastifyInstance, app: WebhookApp): Promise<void> {
  await server.register(async (scope) => {
    endEmptyBodies(scope)
    // Bytes, whatever the content type says: a body that was parsed and written again has another signature.
    scope.removeAllContentTypeParsers()
    // The type that nearly all say is named, too: for any other one the framework takes the text of it apart at each request.
    scope.addContentTypeParser(['application/json', '*'], rawBodyUpTo(BODY_LIMIT))
    takeEvents(scope, app, '/webhooks/store-sales', receiveStoreEvent)
    takeEvents(scope, app, '/webhooks/processor', receiveProcessorEvent)
  })
}

const RECEIVED = JSON.stringify({ received: true })

/** A route whose answer is that the event was received, once `receive` resolves. */
function takeEvents(
  scope: FastifyInstance,
  app: WebhookApp,
  route: string,
  receive: (app: HttpApp, request: FastifyRequest) => Promise<void>,
): void {
  const answer = answerDirectly(app.answeredOn(route), {
    ...app.headers.few,
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(RECEIVED.length),
  })
  scope.post(route, (request: FastifyRequest, reply: FastifyReply) => {
    receive(app, request)
      .then(() => answer(request, reply, { status: 200, headers: [], body: RECEIVED }))
      .catch((error: unknown) => refuseWith(reply, error))
  })
}

async function receiveStoreEvent(app: HttpApp, request: FastifyRequest): Promise<void> {
  const { platform, inbox } = app
  const rawBody = bodyOf(request)
  const domain = headerOf(request, 'x-shopify-shop-domain')?.toLowerCase()
  const claims = domain ? await claimsForWebhook(platform, domain) : []
  const store = await findSigner(claims, rawBody, headerOf(request, 'x-shopify-hmac-sha256'))
  if (!store) throw refuse(platform, request, claims.length > 0 ? 'wrong HMAC' : 'unknown shop domain')
  await inbox.record({
    source: 'store',
    scope: store.storeId,
    deliveryId: headerOf(request, 'x-shopify-webhook-id') ?? hashOf(rawBody),
    topic: headerOf(request, 'x-shopify-topic') ?? null,
    triggeredAt: timeIn(headerOf(request, 'x-shopify-triggered-at')),
    rawBody,
  })
  giveBack(rawBody)
}

async function receiveProcessorEvent(app: HttpApp, request: FastifyRequest): Promise<void> {
  const { platform, inbox, processorSignature } = app
  const rawBody = bodyOf(request)
  const verdict = processorSignature.scheme.verify({
    headers: headersOf(request),
    rawBody,
    secrets: processorSignature.secrets,
    now: platform.clock.now(),
  })
  if (!verdict.ok) throw refuse(platform, request, verdict.reason)
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

function refuse(platform: Platform, request: FastifyRequest, reason: string): Refusal {
  platform.log.warn({ requestId: request.id, route: request.routeOptions.url, reason }, 'webhook refused')
  return new Refusal('invalid_signature', 'The signature of this webhook does not hold.')
}
