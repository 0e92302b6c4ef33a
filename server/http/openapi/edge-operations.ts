import type { ErrorCode } from '../../../shared/error-codes.ts'
import { NOT_AN_ID } from '../../../shared/schemas/common.ts'
import { LINK_NOT_VALID } from '../../notifications/channels/mail/notifications.service.ts'
import { SETUP_ONLY } from '../../platform/api/procedure.ts'
import { EXAMPLES } from './examples.ts'
import { factsFrom, problemResponses, RATE_LIMIT, RETRY_AFTER } from './problem-responses.ts'

const { edge, ids } = EXAMPLES
const { shop_domain: domain, delivery } = edge

export const parameter = (
  place: 'header' | 'path' | 'query',
  name: string,
  example: unknown,
  description?: string,
) => ({
  name,
  in: place,
  required: place !== 'header',
  ...(description !== undefined && { description }),
  schema: { type: 'string' },
  example,
})

const json = (properties: Record<string, object>, example: Record<string, unknown>) => ({
  'application/json': { schema: { type: 'object', properties, required: Object.keys(properties) }, example },
})

/** Bodies of text, by media type. */
const texts = (examples: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(examples).map(([type, example]) => [type, { schema: { type: 'string' }, example }]),
  )

interface EdgeOperation {
  operationId: string
  tag: string
  summary: string
  answers: Record<number, object>
  codes: readonly ErrorCode[]
  /** Texts of its refusals that differ from those of other operations. */
  details?: Partial<Record<ErrorCode, string>>
  [more: string]: unknown
}

/** An operation that is public unless `security` says otherwise. */
const operation = ({ tag, answers, codes, details = {}, ...more }: EdgeOperation) => ({
  tags: [tag],
  security: [] as object[],
  ...more,
  responses: { ...answers, ...problemResponses(codes, factsFrom(details)) },
})

const ok = (description: string, content: object, headers?: object) => ({
  200: { description, ...(headers && { headers }), content },
})

const RECEIVED = ok(
  'The event is stored. It is applied later.',
  json({ received: { type: 'boolean', const: true } }, { received: true }),
)

const SCRIPT_ETAG = 'W/"EVkuiji-7wVAmy2aftY4hT"'
const SCRIPT_CACHE = 'public, max-age=3600'
const SCRIPT_HEADERS = {
  ETag: { required: true, schema: { type: 'string' }, example: SCRIPT_ETAG },
  'Cache-Control': { required: true, schema: { type: 'string', const: SCRIPT_CACHE }, example: SCRIPT_CACHE },
}

const READ_ONLY = { method_not_allowed: 'This path does not support POST; use GET, HEAD.' }

const CLIENT_ETAG = '"EVkuiji-7wVAmy2aftY4hT"'
const CLIENT_CACHE = 'public, no-cache'
const CLIENT_HEADERS = {
  ETag: { required: true, schema: { type: 'string' }, example: CLIENT_ETAG },
  'Cache-Control': { required: true, schema: { type: 'string', const: CLIENT_CACHE }, example: CLIENT_CACHE },
}

const PROCESSOR_EVENTS = Object.fromEntries(
  Object.entries(edge.processor_events).map(([name, value]) => [name, { value }]),
)

export const UNSUBSCRIBE_TOKEN_EXAMPLE = `${ids.users}.payout.paid.${'0a1b2c3d'.repeat(8)}`
const UNSUBSCRIBE_TOKEN = parameter('query', 'token', UNSUBSCRIBE_TOKEN_EXAMPLE, 'As the e-mail has it.')
const UNSUBSCRIBE_PAGE = ok('A page for people.', texts({ 'text/html': '<!doctype html>' }), RATE_LIMIT)

/** By method and path. */
const OPERATIONS: Record<string, EdgeOperation> = {
  'get /jobs/{id}/file': {
    operationId: 'jobs.file',
    tag: 'jobs',
    security: [{ bearer: [] }, { apiKey: [] }],
    summary: "An export's file",
    description:
      'Only for the user who started the export. 404 until the file is ready, 410 once it has expired. New CSV columns are added after the existing ones. A page of the service with a cookie session sends `X-Session: cookie`.',
    parameters: [{ ...parameter('path', 'id', ids.jobs), schema: { type: 'string', format: 'uuid' } }],
    answers: ok(
      'The file.',
      texts({ 'text/csv': edge.files.csv, 'application/x-ndjson': edge.files.ndjson }),
      RATE_LIMIT,
    ),
    codes: [
      'validation_failed',
      'unauthenticated',
      'forbidden',
      'not_found',
      'gone',
      'rate_limited',
      'internal',
      'unavailable',
    ],
    details: {
      validation_failed: `id ${NOT_AN_ID}.`,
      forbidden: SETUP_ONLY,
      not_found: 'This job has no file yet. Check its state.',
      gone: 'The file has expired. Start the export again.',
    },
  },
  'get /go/{slug}': {
    operationId: 'redirect',
    tag: 'redirect',
    summary: "Record a click and redirect to the merchant's product page",
    description:
      'Adds a tracking reference to the product URL. The click is stored before the response is sent. If the offer is not live, the creator is suspended or the database does not take the click, the visitor is redirected without a reference. Parameters of the visit are forwarded unless the product URL has them already, up to 2,048 bytes. Capitals, trailing slashes and punctuation, and invisible characters are ignored. A browser gets a page instead of a problem.',
    parameters: [
      parameter('path', 'slug', EXAMPLES.parameters.slug),
      {
        ...parameter(
          'query',
          'sub',
          'reel-12',
          "The creator's mark of the placement, 1 to 64 printable characters; kept with the click, not forwarded.",
        ),
        required: false,
      },
    ],
    answers: {
      302: {
        description: 'Redirect to the product page.',
        headers: {
          Location: { required: true, schema: { type: 'string', format: 'uri' }, example: edge.tracked_url },
        },
      },
    },
    codes: ['not_found', 'gone', 'internal', 'unavailable'],
    details: { not_found: 'Affiliate link not found.' },
  },
  'get /account/unsubscribe': {
    operationId: 'mail.unsubscribePage',
    tag: 'users',
    summary: 'The page that asks whether to stop e-mails about one event',
    description: 'Changes nothing. A browser gets refusals as a page.',
    parameters: [UNSUBSCRIBE_TOKEN],
    answers: UNSUBSCRIBE_PAGE,
    codes: ['not_found', 'rate_limited', 'internal', 'unavailable'],
    details: { not_found: LINK_NOT_VALID },
  },
  'post /account/unsubscribe': {
    operationId: 'mail.unsubscribe',
    tag: 'users',
    summary: 'Stop e-mails about one event',
    description:
      'The one-click address of RFC 8058 in the header `List-Unsubscribe` of e-mails about events. Its token is bound to one account and one event, and stands for a log-in. The body is ignored; again changes nothing.',
    parameters: [UNSUBSCRIBE_TOKEN],
    requestBody: {
      required: false,
      content: {
        'application/x-www-form-urlencoded': {
          schema: { type: 'object', properties: { 'List-Unsubscribe': { type: 'string' } } },
          example: { 'List-Unsubscribe': 'One-Click' },
        },
      },
    },
    answers: UNSUBSCRIBE_PAGE,
    codes: ['not_found', 'payload_too_large', 'rate_limited', 'internal', 'unavailable'],
    details: { not_found: LINK_NOT_VALID },
  },
  'get /store.js': {
    operationId: 'stores.script',
    tag: 'stores',
    summary: "The script for a store's theme",
    description:
      'Carries the tracking reference from the landing page into the order: as a cart attribute and, for buy-now buttons, as a line property. Attributes of the script tag: `data-parameter` (default: the TRACKING_PARAMETER of the service), `data-days` (how long a reference is kept; default 30), `data-consent="off"` (does not ask Shopify\'s consent API). Any origin may load it.',
    parameters: [parameter('header', 'If-None-Match', SCRIPT_ETAG, 'The `ETag` of a stored response.')],
    answers: {
      200: {
        description: 'The script, minified.',
        headers: SCRIPT_HEADERS,
        content: texts({ 'text/javascript': '(()=>{})();' }),
      },
      304: { description: 'The stored response is still current. No body.', headers: SCRIPT_HEADERS },
    },
    codes: ['method_not_allowed', 'internal'],
    details: READ_ONLY,
  },
  'get /client.tgz': {
    operationId: 'clients.package',
    tag: 'operation',
    summary: 'The TypeScript client of this version',
    description:
      'A package for npm: `npm install https://HOST/client.tgz`. After an upgrade of the service, install it again. 404 where the service runs from a checkout in which it was not built.',
    parameters: [parameter('header', 'If-None-Match', CLIENT_ETAG, 'The `ETag` of a stored response.')],
    answers: {
      200: {
        description: 'The tarball.',
        headers: { ...CLIENT_HEADERS, ...RATE_LIMIT },
        content: texts({ 'application/gzip': 'The bytes of the tarball.' }),
      },
      304: { description: 'The stored response is still current. No body.', headers: CLIENT_HEADERS },
    },
    codes: ['not_found', 'method_not_allowed', 'rate_limited', 'internal', 'unavailable'],
    details: READ_ONLY,
  },
  'post /webhooks/store-sales': {
    operationId: 'webhooks.storeSales',
    tag: 'incoming',
    security: [{ storeSignature: [] }, { storeSignatureX: [] }],
    summary: "A store's event about an order",
    description:
      'Sent by Shopify, whose headers have two forms of names: `Shopify-Topic` and `X-Shopify-Topic`. Either is accepted; the first is read first. `Shopify-Hmac-Sha256` is base64 of HMAC-SHA256 over the raw body, with the webhook secret of the store. If several merchants have connected the domain, the event belongs to the one whose secret verifies it. `orders/paid` decides the sale. `orders/create`, `orders/updated` and `orders/cancelled` make, change and end a pending order. Other topics are stored and ignored. A redelivery changes nothing.',
    parameters: [
      parameter('header', 'Shopify-Shop-Domain', domain, "The store's domain."),
      parameter(
        'header',
        'X-Shopify-Shop-Domain',
        domain,
        'The other name of `Shopify-Shop-Domain`. One of the two is required.',
      ),
      parameter(
        'header',
        'Shopify-Topic',
        'orders/paid',
        '`orders/paid`, or a topic of an order that waits for its payment.',
      ),
      parameter('header', 'X-Shopify-Topic', 'orders/paid', 'The other name of `Shopify-Topic`.'),
      parameter(
        'header',
        'Shopify-Event-Id',
        delivery,
        'Together with the topic, the delivery id if there is no webhook id.',
      ),
      parameter('header', 'X-Shopify-Webhook-Id', delivery, 'The delivery id; the same on retries.'),
    ],
    requestBody: {
      required: true,
      description: "Shopify's order, at most 2 MiB.",
      content: { 'application/json': { schema: { type: 'object' }, example: edge.order } },
    },
    answers: {
      ...RECEIVED,
      // Quotas are per store, so there are no RateLimit headers.
      429: { ...(problemResponses(['rate_limited'])[429] as object), headers: RETRY_AFTER },
    },
    codes: ['invalid_signature', 'payload_too_large', 'unsupported_media_type', 'internal', 'unavailable'],
  },
  'post /webhooks/processor': {
    operationId: 'webhooks.processor',
    tag: 'incoming',
    security: [{ processorSignature: [] }],
    summary: "The payment processor's event",
    description:
      'A confirmed billing payment, a confirmed payout, or a failed payout. A redelivery changes nothing. `webhook-signature` is `v1,` and base64 of HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, with the webhook secret of the processor. These are the headers of Standard Webhooks, the default; `PROCESSOR_SIGNATURE` in the settings can choose others.',
    parameters: [
      parameter('header', 'webhook-id', 'msg_2mN8pQ4rT6vX', 'The delivery id; the same on retries.'),
      parameter('header', 'webhook-timestamp', '1796204487', 'When it was sent, in Unix seconds.'),
    ],
    requestBody: {
      required: true,
      description: 'The event, at most 2 MiB.',
      content: { 'application/json': { schema: { type: 'object' }, examples: PROCESSOR_EVENTS } },
    },
    answers: RECEIVED,
    codes: ['invalid_signature', 'payload_too_large', 'unsupported_media_type', 'internal', 'unavailable'],
  },
  'get /healthz': {
    operationId: 'health',
    tag: 'operation',
    summary: 'Liveness',
    answers: ok('The process answers.', json({ status: { type: 'string' } }, { status: 'ok' })),
    codes: ['method_not_allowed'],
    details: READ_ONLY,
  },
  'get /readyz': {
    operationId: 'readiness',
    tag: 'operation',
    summary: 'Readiness: the database answers and has no pending migrations',
    answers: ok(
      'Ready.',
      json(
        {
          status: { type: 'string', const: 'ready' },
          environment: { type: 'string', enum: ['development', 'test', 'production'] },
        },
        { status: 'ready', environment: 'production' },
      ),
    ),
    codes: ['method_not_allowed', 'unavailable'],
    details: READ_ONLY,
  },
  'get /metrics': {
    operationId: 'metrics',
    tag: 'operation',
    security: [{}, { metricsToken: [] }],
    summary: 'Prometheus metrics',
    description:
      'Needs METRICS_TOKEN as the bearer token. If it is not set, metrics are available on the same machine only, and disabled in production.',
    answers: ok('Prometheus text format.', texts({ 'text/plain': 'affiliate_database_up 1\n' })),
    codes: ['unauthenticated', 'forbidden', 'internal'],
  },
  'get /.well-known/security.txt': {
    operationId: 'securityTxt',
    tag: 'operation',
    summary: 'Where to report a vulnerability (RFC 9116)',
    description: 'Available if SECURITY_CONTACT is set.',
    answers: {
      200: {
        description: 'The contact, and until when it is valid.',
        headers: RATE_LIMIT,
        content: texts({
          'text/plain': 'Contact: mailto:security@example.com\nExpires: 2027-05-01T07:00:00.000Z\n',
        }),
      },
    },
    codes: ['not_found', 'rate_limited'],
  },
}

export const EDGE_PATHS: Record<string, Record<string, ReturnType<typeof operation>>> = {}
for (const [route, facts] of Object.entries(OPERATIONS)) {
  const [method = '', path = ''] = route.split(' ')
  EDGE_PATHS[path] = { ...EDGE_PATHS[path], [method]: operation(facts) }
}

/** How callers prove who they are. */
export const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token that logging in or registering returns.',
  },
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API key of a merchant or creator, from `POST /auth/api-keys`: `afk_` and 43 characters. With the scope `read` it may call what changes nothing.',
  },
  storeSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Shopify-Hmac-Sha256',
    description:
      "Base64 of HMAC-SHA256 over the raw body, with the store's webhook secret. Read before `X-Shopify-Hmac-Sha256`.",
  },
  storeSignatureX: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Shopify-Hmac-Sha256',
    description: 'The same signature under the other name that Shopify uses.',
  },
  processorSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description:
      "`v1,` and base64 of HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, with the processor's webhook secret (Standard Webhooks).",
  },
  metricsToken: { type: 'http', scheme: 'bearer', description: '`METRICS_TOKEN` of the settings.' },
}
