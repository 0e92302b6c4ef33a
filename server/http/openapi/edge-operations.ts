import { EXAMPLES, namedExamples } from './examples.ts'
import { problemResponses, RATE_LIMIT, RETRY_AFTER } from './problem-responses.ts'

const { edge, ids } = EXAMPLES
const { shop_domain: domain, delivery } = edge

const header = (name: string, description: string, example: string, required = true) => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
  example,
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

const SCRIPT_ETAG = 'W/"EVkuiji-7wVAmy2aftY4hT"'
const SCRIPT_CACHE = 'public, max-age=3600'
const SCRIPT_HEADERS = {
  ETag: { required: true, schema: { type: 'string' }, example: SCRIPT_ETAG },
  'Cache-Control': {
    required: true,
    schema: { type: 'string', const: SCRIPT_CACHE },
    example: SCRIPT_CACHE,
  },
}

export const UNSUBSCRIBE_TOKEN_EXAMPLE = `${ids.users}.payout.paid.${'0a1b2c3d'.repeat(8)}`
const UNSUBSCRIBE_TOKEN = {
  name: 'token',
  in: 'query',
  required: true,
  description: 'As the e-mail has it.',
  schema: { type: 'string' },
  example: UNSUBSCRIBE_TOKEN_EXAMPLE,
}
const UNSUBSCRIBE_PAGE = {
  description: 'A page for people.',
  headers: RATE_LIMIT,
  content: { 'text/html': { schema: { type: 'string' }, example: '<!doctype html>' } },
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
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          schema: { type: 'string', format: 'uuid' },
          example: ids.jobs,
        },
      ],
      responses: {
        200: {
          description: 'The file.',
          headers: RATE_LIMIT,
          content: {
            'text/csv': { schema: { type: 'string' }, example: edge.files.csv },
            'application/x-ndjson': { schema: { type: 'string' }, example: edge.files.ndjson },
          },
        },
        ...problemResponses([
          'validation_failed',
          'unauthenticated',
          'not_found',
          'gone',
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
      parameters: [
        {
          name: 'slug',
          in: 'path',
          required: true,
          schema: { type: 'string' },
          example: EXAMPLES.parameters.slug,
        },
      ],
      responses: {
        302: {
          description: 'Redirect to the product page.',
          headers: {
            Location: {
              required: true,
              schema: { type: 'string', format: 'uri' },
              example: edge.tracked_url,
            },
          },
        },
        ...problemResponses(['not_found', 'gone', 'internal', 'unavailable']),
      },
    },
  },
  '/account/unsubscribe': {
    get: {
      operationId: 'mail.unsubscribePage',
      tags: ['users'],
      security: [],
      summary: 'The page that asks whether to stop e-mails about one event',
      description: 'Changes nothing. A browser gets refusals as a page.',
      parameters: [UNSUBSCRIBE_TOKEN],
      responses: {
        200: UNSUBSCRIBE_PAGE,
        ...problemResponses(['not_found', 'rate_limited', 'internal', 'unavailable']),
      },
    },
    post: {
      operationId: 'mail.unsubscribe',
      tags: ['users'],
      security: [],
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
      responses: {
        200: UNSUBSCRIBE_PAGE,
        ...problemResponses(['not_found', 'payload_too_large', 'rate_limited', 'internal', 'unavailable']),
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
      parameters: [header('If-None-Match', 'The `ETag` of a stored response.', SCRIPT_ETAG, false)],
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
      tags: ['incoming'],
      security: [{ storeSignature: [] }, { storeSignatureX: [] }],
      summary: "A store's orders/paid event",
      description:
        'Sent by Shopify, whose headers have two forms of names: `Shopify-Topic` and `X-Shopify-Topic`. Either is accepted; the first is read first. `Shopify-Hmac-Sha256` is base64 of HMAC-SHA256 over the raw body, with the webhook secret of the store. If several merchants have connected the domain, the event belongs to the one whose secret verifies it. Other topics are stored and ignored. A redelivery changes nothing.',
      parameters: [
        header('Shopify-Shop-Domain', "The store's domain.", domain, false),
        header(
          'X-Shopify-Shop-Domain',
          'The other name of `Shopify-Shop-Domain`. One of the two is required.',
          domain,
          false,
        ),
        header('Shopify-Topic', '`orders/paid`', 'orders/paid', false),
        header('X-Shopify-Topic', 'The other name of `Shopify-Topic`.', 'orders/paid', false),
        header(
          'Shopify-Event-Id',
          'Together with the topic, the delivery id if there is no webhook id.',
          delivery,
          false,
        ),
        header('X-Shopify-Webhook-Id', 'The delivery id; the same on retries.', delivery, false),
      ],
      requestBody: {
        required: true,
        description: "Shopify's order, at most 2 MiB.",
        content: { 'application/json': { schema: { type: 'object' }, example: edge.order } },
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
      tags: ['incoming'],
      security: [{ processorSignature: [] }],
      summary: "The payment processor's event",
      description:
        'A confirmed billing payment, a confirmed payout, or a failed payout. A redelivery changes nothing. `webhook-signature` is `v1,` and base64 of HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, with the webhook secret of the processor. These are the headers of Standard Webhooks, the default; `PROCESSOR_SIGNATURE` in the settings can choose others.',
      parameters: [
        header('webhook-id', 'The delivery id; the same on retries.', 'msg_2mN8pQ4rT6vX', false),
        header('webhook-timestamp', 'When it was sent, in Unix seconds.', '1796204487', false),
      ],
      requestBody: {
        required: true,
        description: 'The event, at most 2 MiB.',
        content: {
          'application/json': {
            schema: { type: 'object' },
            examples: namedExamples(edge.processor_events),
          },
        },
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
      security: [{}, { metricsToken: [] }],
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
  '/.well-known/security.txt': {
    get: {
      operationId: 'securityTxt',
      tags: ['operation'],
      security: [],
      summary: 'Where to report a vulnerability (RFC 9116)',
      description: 'Available if SECURITY_CONTACT is set.',
      responses: {
        200: {
          description: 'The contact, and until when it is valid.',
          headers: RATE_LIMIT,
          content: {
            'text/plain': {
              schema: { type: 'string' },
              example: 'Contact: mailto:security@example.com\nExpires: 2027-05-01T07:00:00.000Z\n',
            },
          },
        },
        ...problemResponses(['not_found', 'rate_limited']),
      },
    },
  },
}
