import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Receipt, ReceivedEvent } from '../../inbox/intake.service.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { deliveryHeader, deliveryIdOf } from '../../shopify/delivery-headers.ts'
import { decodeShopifyHmac } from '../../shopify/signature.ts'
import { RefusedDeliveries } from '../../stores/refused-deliveries.service.ts'
import { claimsForWebhook, findSigner, isClaimed } from '../../stores/webhook-claims.service.ts'
import type { HttpApp } from '../context.ts'
import { sendError } from '../errors.ts'
import { endEmptyBodies } from '../request-body.ts'
import { setShortHeaders } from '../security-headers.ts'
import { WebhookQuota } from './webhook-quota.ts'
import { WebhookRefusals } from './webhook-refusals.ts'

const BODY_LIMIT = 2 * 1024 * 1024
const MAX_DROPPED_BYTES = 64 * 1024
/** Of all bodies that are being read. */
const MAX_READING_BYTES = 64 * 1024 * 1024
const STORE_ROUTE = '/webhooks/store-sales'
const PROCESSOR_ROUTE = '/webhooks/processor'

interface Intake extends HttpApp {
  quota: WebhookQuota
  refusals: WebhookRefusals
  /** Of deliveries in the name of connected shops. */
  refused: RefusedDeliveries
}

/**
 * The webhook routes. Checks the headers before the body is read, then the signature over the raw bytes, then the store's
 * quota; writes the event to the inbox; answers 200. The worker applies the event later.
 */
export async function registerWebhooks(server: FastifyInstance, app: HttpApp): Promise<void> {
  const { platform } = app
  const refusals = new WebhookRefusals(platform.log)
  const refused = new RefusedDeliveries(platform)
  const intake: Intake = { ...app, refusals, refused, quota: new WebhookQuota(platform.config) }
  server.addHook('onClose', async () => {
    refusals.flush()
    await refused.flush({ all: true })
  })
  await server.register(async (scope) => {
    endEmptyBodies(scope)
    limitBodies(scope, (request) =>
      request.routeOptions.url === STORE_ROUTE
        ? checkStoreHead(intake, request)
        : checkProcessorHead(intake, request),
    )
    // Signatures cover the raw bytes, whatever the content type. Named besides `*`: Fastify finds it without parsing the header.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(['application/json', '*'], readBody)
    acceptEvents(scope, intake, STORE_ROUTE, receiveStoreEvent)
    acceptEvents(scope, intake, PROCESSOR_ROUTE, receiveProcessorEvent)
  })
}

/** The most bytes that the body of a request takes. */
function bodyBytes({ headers }: FastifyRequest): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : BODY_LIMIT
}

/** Reads a body as it came. `parseAs: 'buffer'` would copy each body, also those that came in one piece, as most do. */
function readBody(
  _request: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const pieces: Buffer[] = []
  let bytes = 0
  const answer = (error: Error | null, body?: Buffer) => {
    payload.off('data', collect).off('end', end).off('close', breakOff)
    done(error, body)
  }
  const collect = (piece: Buffer) => {
    bytes += piece.length
    if (bytes > BODY_LIMIT) answer(tooLarge())
    else pieces.push(piece)
  }
  const end = () => answer(null, pieces.length === 1 ? pieces[0] : Buffer.concat(pieces))
  const breakOff = () => answer(new Refusal('validation_failed', 'The body is incomplete.'))
  payload.on('data', collect).once('end', end).once('close', breakOff)
}

function tooLarge(): Refusal {
  return new Refusal('payload_too_large', 'The body is too large.')
}

/**
 * Reads no body before `checkHead` has accepted its request, and limits the memory of all that are being read. Bodies arrive within
 * milliseconds, so the oldest is a stalled one: it is dropped.
 */
function limitBodies(
  scope: FastifyInstance,
  checkHead: (request: FastifyRequest) => Promise<void> | undefined,
): void {
  /** Oldest first. */
  const reading = new Map<IncomingMessage, number>()
  let bytes = 0
  const end = (body: IncomingMessage) => {
    bytes -= reading.get(body) ?? 0
    reading.delete(body)
  }
  const begin = (body: IncomingMessage, own: number) => {
    reading.set(body, own)
    bytes += own
    body.once('close', () => end(body))
    for (const oldest of reading.keys()) {
      if (bytes <= MAX_READING_BYTES) break
      end(oldest)
      oldest.destroy()
    }
  }
  scope.addHook('preParsing', (request, reply, payload, done) => {
    const own = bodyBytes(request)
    const hasMalformedType = request.headers['content-type'] !== undefined && request.mediaType === undefined
    // Fastify answers it with 415.
    if (hasMalformedType) return done(null, payload)
    const read = () => {
      begin(request.raw, own)
      done(null, payload)
    }
    const refuse = (error: Error) => {
      // A smaller body is read and dropped, so that the sender gets the answer.
      if (own > MAX_DROPPED_BYTES) reply.header('connection', 'close')
      done(error)
    }
    try {
      if (own > BODY_LIMIT) throw tooLarge()
      const checked = checkHead(request)
      if (checked) checked.then(read, refuse)
      else read()
    } catch (error) {
      refuse(error as Error)
    }
  })
}

const RECEIVED = JSON.stringify({ received: true })

/** A route that answers 200 once `receive` resolves. */
function acceptEvents(
  scope: FastifyInstance,
  intake: Intake,
  route: string,
  receive: (intake: Intake, request: FastifyRequest) => Promise<void>,
): void {
  scope.post(route, (request: FastifyRequest, reply: FastifyReply) => {
    receive(intake, request)
      .then(() => setShortHeaders(request, reply).type('application/json; charset=utf-8').send(RECEIVED))
      .catch((error: unknown) => sendError(reply, error))
  })
}

/** Refuses an unknown store and a malformed signature; at once when the claims on the domain are cached. */
function checkStoreHead(intake: Intake, request: FastifyRequest): Promise<void> | undefined {
  const domain = domainOf(request)
  if (domain === undefined) throw refuse(intake, request, 'no shop domain')
  const claimed = isClaimed(intake.platform, domain)
  const check = (claimed: boolean) => {
    if (!claimed) throw refuseUnclaimed(intake, request, domain)
    if (decodeShopifyHmac(signatureOf(request))) return
    intake.refused.note(domain, 'no_signature')
    throw refuse(intake, request, 'no HMAC')
  }
  return typeof claimed === 'boolean' ? void check(claimed) : claimed.then(check)
}

const signatureOf = ({ headers }: FastifyRequest) => deliveryHeader(headers, 'hmac-sha256')

const domainOf = ({ headers }: FastifyRequest) => deliveryHeader(headers, 'shop-domain')?.toLowerCase()

async function receiveStoreEvent(intake: Intake, request: FastifyRequest): Promise<void> {
  const { platform, inbox, quota } = intake
  const rawBody = bodyOf(request)
  const domain = domainOf(request)
  const claims = domain ? await claimsForWebhook(platform, domain) : []
  const store = await findSigner(claims, rawBody, signatureOf(request))
  if (!store) {
    if (!domain || claims.length === 0) throw refuseUnclaimed(intake, request, domain)
    intake.refused.note(domain, 'wrong_signature')
    throw refuse(intake, request, 'wrong HMAC')
  }
  if (domain) intake.refused.accepted(domain)
  const event: ReceivedEvent = {
    source: 'store',
    scope: store.storeId,
    deliveryId: deliveryIdOf(request.headers) ?? hashOf(rawBody),
    topic: deliveryHeader(request.headers, 'topic') ?? null,
    triggeredAt: timeIn(deliveryHeader(request.headers, 'triggered-at')),
    rawBody,
  }
  const reservation = await quota.reserve(event.scope, rawBody.length).catch(async (error: unknown) => {
    // A redelivery over quota: its event is stored already.
    if (error instanceof Refusal && (await inbox.isKnown(event))) return null
    throw error
  })
  if (!reservation) return
  let receipt: Receipt = 'known'
  try {
    receipt = await inbox.record(event)
  } finally {
    // Neither redeliveries nor events that could not be written count.
    if (receipt === 'known') await reservation.refund()
  }
}

/** Refuses a request without the headers of the signature scheme. */
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

/** The delivery id of events that carry none. */
function hashOf(rawBody: Buffer): string {
  return `sha256:${createHash('sha256').update(rawBody).digest('hex')}`
}

/** RFC 3339, as Shopify writes it; epoch ms, `null` for anything else. */
function timeIn(text: string | undefined): number | null {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}/.test(text)) return null
  const time = Date.parse(text)
  return Number.isSafeInteger(time) ? time : null
}

function headersOf(request: FastifyRequest): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : value,
    ]),
  )
}

function refuseUnclaimed(intake: Intake, request: FastifyRequest, domain: string | undefined): Refusal {
  if (domain) intake.refused.noteUnclaimed(domain)
  return refuse(intake, request, 'unknown shop domain')
}

function refuse({ refusals }: Intake, request: FastifyRequest, reason: string): Refusal {
  const route = request.routeOptions.url ?? ''
  const domain = route === STORE_ROUTE ? (domainOf(request) ?? null) : null
  refusals.note({ requestId: request.id, route, domain, reason })
  return new Refusal('invalid_signature', 'Invalid webhook signature.')
}
