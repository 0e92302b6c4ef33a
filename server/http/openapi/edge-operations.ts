import { problemResponses, RETRY_AFTER } from './problem-responses.ts'

/** The description of each group of procedures; a group without one fails the build of the document. */
export const CONCEPTS: Record<string, string> = {
  auth: 'Accounts and sessions.',
  users: 'The account of the caller.',
  stores: "A merchant's connected stores.",
  offers: "Merchants' products that creators apply to promote.",
  applications: "Creators' applications to offers, and merchants' decisions on them.",
  links: 'Affiliate links of approved applications.',
  sales: 'Orders that stores reported, accepted or rejected with a reason.',
  payouts: 'Payments to creators.',
  billing: "Merchants' billing cycles.",
  admin: 'Moderation.',
  jobs: 'Exports to files.',
  summaries: "The caller's figures.",
}

/** Tags of the routes that are not procedures. */
export const EDGE_TAGS = [
  { name: 'redirect', description: 'Affiliate links as visitors open them.' },
  { name: 'webhooks', description: 'Events from stores and the payment processor, verified by signature.' },
  { name: 'operation', description: 'For operators of the service.' },
]

const header = (name: string, description: string, required = true) => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
})

const received = {
  description: 'The event is stored. It is applied later.',
  content: {
    'application/json': {
      schema: {
        type: 'object',
        properties: { received: { type: 'boolean', const: true } },
        required: ['received'],
      },
      example: { received: true },
    },
  },
}

const status = (value: string) => ({
  description: 'The process answers.',
  content: {
    'application/json': {
      schema: { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] },
      example: { status: value },
    },
  },
})

/** The fields of an order that the service reads. */
const ORDER = {
  id: 820982911946154500,
  name: '#1001',
  created_at: '2026-11-20T22:30:00+05:00',
  currency: 'PKR',
  financial_status: 'paid',
  cancelled_at: null,
  test: false,
  taxes_included: false,
  email: 'buyer@example.com',
  landing_site: '/products/brass-lamp?aff_ref=019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e',
  note_attributes: [],
  line_items: [
    {
      product_id: 8123456789012,
      title: 'Brass lamp',
      quantity: 1,
      price: '4500.00',
      discount_allocations: [],
      tax_lines: [],
    },
  ],
}

const PAYMENT_EVENT = {
  type: 'billing.payment_confirmed',
  data: { invoice_id: 'inv_1', payment_reference: 'pay_1', amount: '1250.00', currency: 'PKR' },
}

const SCRIPT_HEADERS = {
  ETag: { required: true, schema: { type: 'string' } },
  'Cache-Control': { required: true, schema: { type: 'string', const: 'public, max-age=3600' } },
}

export const EDGE_PATHS = {
  '/jobs/{id}/file': {
    get: {
      operationId: 'jobs.file',
      tags: ['jobs'],
      security: [{ bearer: [] }],
      summary: "An export's file",
      description:
        'Only for the user who started the export. 404 until the file is ready, 410 once it has expired. New CSV columns are added after the existing ones.',
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }],
      responses: {
        200: {
          description: 'The file.',
          content: {
            'text/csv': { schema: { type: 'string' }, example: 'id,acceptance_status\r\n' },
            'application/x-ndjson': { schema: { type: 'string' } },
          },
        },
        410: { description: 'The file has expired.' },
        ...problemResponses([
          'validation_failed',
          'unauthenticated',
          'not_found',
          'rate_limited',
          'internal',
          'unavailable',
        ]),
      },
    },
  },
  '/go/{slug}': {
    get: {
      operationId: 'redirect',
      tags: ['redirect'],
      security: [],
      summary: "Record a click and redirect to the merchant's product page",
      description:
        'Adds a tracking reference to the product URL. The click is stored before the response is sent. If the offer is not live or the creator is suspended, the visitor is redirected without a reference.',
      parameters: [{ name: 'slug', in: 'path', required: true, schema: { type: 'string' } }],
      responses: {
        302: {
          description: 'Redirect to the product page.',
          headers: {
            Location: {
              required: true,
              schema: { type: 'string', format: 'uri' },
              example: 'https://shop.pk/products/lamp?aff_ref=019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e',
            },
          },
        },
        410: { description: 'The merchant is suspended.' },
        ...problemResponses(['not_found', 'internal', 'unavailable']),
      },
    },
  },
  '/store.js': {
    get: {
      operationId: 'stores.script',
      tags: ['stores'],
      security: [],
      summary: "The script for a store's theme",
      description:
        'Carries the tracking reference from the landing page into the order: as a cart attribute and, for buy-now buttons, as a line property. Attributes of the script tag: `data-parameter` (default: the TRACKING_PARAMETER of the service), `data-days` (how long a reference is kept; default 30), `data-consent="off"` (does not ask Shopify\'s consent API). Any origin may load it.',
      parameters: [header('If-None-Match', 'The `ETag` of a stored response.', false)],
      responses: {
        200: {
          description: 'The script, minified.',
          headers: SCRIPT_HEADERS,
          content: { 'text/javascript': { schema: { type: 'string' }, example: '(()=>{})();' } },
        },
        304: { description: 'The stored response is still current. No body.', headers: SCRIPT_HEADERS },
        ...problemResponses(['method_not_allowed', 'internal']),
      },
    },
  },
  '/webhooks/store-sales': {
    post: {
      operationId: 'webhooks.storeSales',
      tags: ['webhooks'],
      security: [],
      summary: "A store's orders/paid event",
      description:
        'Sent by Shopify. The signature is base64(HMAC-SHA256) over the raw body with the secret of the store. If several merchants have connected the domain, the event belongs to the one whose secret verifies it. Other topics are stored and ignored. A redelivery changes nothing.',
      parameters: [
        header('X-Shopify-Hmac-Sha256', 'The signature.'),
        header('X-Shopify-Shop-Domain', "The store's domain."),
        header('X-Shopify-Topic', '`orders/paid`', false),
        header('X-Shopify-Webhook-Id', 'The delivery id; the same on retries.', false),
      ],
      requestBody: {
        required: true,
        description: "Shopify's order, at most 2 MiB.",
        content: { 'application/json': { schema: { type: 'object' }, example: ORDER } },
      },
      responses: {
        200: received,
        // Quotas are per store, so there are no RateLimit headers.
        429: { ...(problemResponses(['rate_limited'])[429] as object), headers: RETRY_AFTER },
        ...problemResponses(['invalid_signature', 'payload_too_large', 'internal', 'unavailable']),
      },
    },
  },
  '/webhooks/processor': {
    post: {
      operationId: 'webhooks.processor',
      tags: ['webhooks'],
      security: [],
      summary: "The payment processor's event",
      description:
        'A confirmed billing payment, a confirmed payout, or a failed payout. The signature scheme in the settings (by default Standard Webhooks) determines the signature headers.',
      requestBody: {
        required: true,
        description: 'The event, at most 2 MiB.',
        content: { 'application/json': { schema: { type: 'object' }, example: PAYMENT_EVENT } },
      },
      responses: {
        200: received,
        ...problemResponses(['invalid_signature', 'payload_too_large', 'internal', 'unavailable']),
      },
    },
  },
  '/healthz': {
    get: {
      operationId: 'health',
      tags: ['operation'],
      security: [],
      summary: 'Liveness',
      responses: { 200: status('ok'), ...problemResponses(['method_not_allowed']) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readiness',
      tags: ['operation'],
      security: [],
      summary: 'Readiness: the database answers and has no pending migrations',
      responses: {
        200: {
          description: 'Ready.',
          content: {
            'application/json': {
              schema: {
                type: 'object',
                properties: {
                  status: { type: 'string', const: 'ready' },
                  environment: { type: 'string', enum: ['development', 'test', 'production'] },
                },
                required: ['status', 'environment'],
              },
              example: { status: 'ready', environment: 'production' },
            },
          },
        },
        ...problemResponses(['method_not_allowed', 'unavailable']),
      },
    },
  },
  '/metrics': {
    get: {
      operationId: 'metrics',
      tags: ['operation'],
      security: [{}, { bearer: [] }],
      summary: 'Prometheus metrics',
      description:
        'Needs METRICS_TOKEN as the bearer token. If it is not set, metrics are available on the same machine only, and disabled in production.',
      responses: {
        200: {
          description: 'Prometheus text format.',
          content: { 'text/plain': { schema: { type: 'string' }, example: 'affiliate_database_up 1\n' } },
        },
        ...problemResponses(['unauthenticated', 'forbidden', 'internal']),
      },
    },
  },
}
