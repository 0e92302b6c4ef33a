import { problemResponses, RETRY_AFTER } from './openapi-problems.ts'

/** What each group of procedures is about; a group without a line here has no document. */
export const CONCEPTS: Record<string, string> = {
  auth: 'Accounts and sessions.',
  users: 'The account that calls.',
  stores: "A merchant's stores, which report the sales.",
  offers: "Merchants' products that creators can apply to.",
  applications: "Creators' applications to offers, and the merchants' decisions.",
  links: 'The affiliate links that approvals make.',
  sales: 'What the stores reported, accepted or rejected, with the reasons.',
  payouts: 'Money sent to creators.',
  billing: "Merchants' billing cycles.",
  admin: 'Moderation.',
  jobs: 'Exports.',
  summaries: 'How the caller stands.',
}

/** The routes that are no procedures, described by hand. */
export const EDGE_TAGS = [
  { name: 'redirect', description: 'What visitors follow.' },
  { name: 'webhooks', description: 'What the stores and the payment processor call; verified by signature.' },
  { name: 'operation', description: 'For those who run the service.' },
]

const header = (name: string, description: string, required = true) => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
})

const received = {
  description: 'The event is on disk; it is applied afterwards.',
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

const status = (word: string) => ({
  description: 'So it is.',
  content: {
    'application/json': {
      schema: { type: 'object', properties: { status: { type: 'string' } }, required: ['status'] },
      example: { status: word },
    },
  },
})

/** As much of an order as is looked at. */
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

export const EDGE_PATHS = {
  '/jobs/{id}/file': {
    get: {
      operationId: 'jobs.file',
      tags: ['jobs'],
      security: [{ bearer: [] }],
      summary: "An export's file",
      description:
        'For its starter. 404 until it is there, 410 once it has expired. New columns of a CSV file come after the existing ones.',
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
      summary: "Log a click and go to the merchant's product page",
      description:
        "Adds a tracking reference to the product's address. The click is on disk before the answer leaves. When the offer is not live or the creator is suspended, the visitor still gets there, without a reference.",
      parameters: [{ name: 'slug', in: 'path', required: true, schema: { type: 'string' } }],
      responses: {
        302: {
          description: 'On to the product page.',
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
  '/webhooks/store-sales': {
    post: {
      operationId: 'webhooks.storeSales',
      tags: ['webhooks'],
      security: [],
      summary: "A store's orders/paid event",
      description:
        'Sent by Shopify. The signature is base64(HMAC-SHA256) over the raw body with the secret of the store. Several merchants may have connected one domain: the delivery belongs to the one whose secret verifies it. Other topics are recorded and not used. A redelivery changes nothing.',
      parameters: [
        header('X-Shopify-Hmac-Sha256', 'The signature.'),
        header('X-Shopify-Shop-Domain', 'The store.'),
        header('X-Shopify-Topic', '`orders/paid`', false),
        header('X-Shopify-Webhook-Id', 'The delivery; the same on its retries.', false),
      ],
      requestBody: {
        required: true,
        description: "Shopify's order, at most 2 MiB.",
        content: { 'application/json': { schema: { type: 'object' }, example: ORDER } },
      },
      responses: {
        200: received,
        // Deliveries are not counted by address, so there is no count to answer.
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
        'A billing payment confirmed, a payout confirmed, or a payout failed. Which headers carry the signature is up to the signature scheme in the settings (Standard Webhooks unless set).',
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
      summary: 'Whether the process answers',
      responses: { 200: status('ok'), ...problemResponses(['method_not_allowed']) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readiness',
      tags: ['operation'],
      security: [],
      summary: 'Whether the database is there and up to date',
      responses: {
        200: {
          description: 'It can.',
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
      summary: 'Figures for Prometheus',
      description:
        'With METRICS_TOKEN as the bearer token. Where none is set: for the same machine only, and disabled in production.',
      responses: {
        200: {
          description: "Prometheus' text format.",
          content: { 'text/plain': { schema: { type: 'string' }, example: 'affiliate_database_up 1\n' } },
        },
        ...problemResponses(['unauthenticated', 'forbidden', 'internal']),
      },
    },
  },
}
