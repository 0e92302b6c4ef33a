import { z } from 'zod'
import { CREATOR_EVENTS, EVENT_NAMES, MERCHANT_EVENTS } from '../events.ts'
import { idParam, lineOfText, pageInput, pageOf, wireTime } from './common.ts'

/** What `POST /webhook-endpoints/:id/test` sends, to any endpoint. */
export const TEST_EVENT = 'webhook.test'

export const MAX_ENDPOINT_URL_LENGTH = 2048

const webhookEvent = z.enum(EVENT_NAMES)

const events = z
  .array(webhookEvent)
  .min(1, 'must name at least one event')
  .max(EVENT_NAMES.length)
  .refine((names) => new Set(names).size === names.length, 'must name each event once')
  .meta({
    description: `Merchants: ${MERCHANT_EVENTS.join(', ')}. Creators: ${CREATOR_EVENTS.join(', ')}.`,
    example: ['sale.accepted'],
  })

const endpointUrl = z.string().min(1).max(MAX_ENDPOINT_URL_LENGTH).meta({
  description: 'A public https address. Redirects are not followed.',
  example: 'https://shop.example.com/affiliate-events',
})

const description = lineOfText(0, 200).meta({ description: 'For you.', example: 'Order desk' })

export const webhookEndpoint = z
  .object({
    id: idParam,
    url: z
      .string()
      .meta({ description: 'Where events are sent.', example: 'https://shop.example.com/affiliate-events' }),
    description: z.string().describe('For you.'),
    events: z.array(webhookEvent).describe('Which events are sent.'),
    enabled: z.boolean().describe('A disabled endpoint receives nothing.'),
    disabled_reason: z
      .enum(['owner', 'operator', 'gone', 'failing'])
      .nullable()
      .describe(
        '`gone`: it answered 410. `failing`: it failed for 5 days. `owner`, `operator`: one of them disabled it.',
      ),
    failing_since: wireTime.nullable().describe('Since when every attempt has failed.'),
    former_secret_valid_until: wireTime
      .nullable()
      .describe('Until then, deliveries are also signed with the secret that was replaced.'),
    created_at: wireTime,
    updated_at: wireTime,
  })
  .meta({ id: 'WebhookEndpoint' })
export type WebhookEndpoint = z.infer<typeof webhookEndpoint>

export const webhookEndpointWithSecret = webhookEndpoint
  .extend({
    secret: z.string().meta({
      description: 'Verifies the signatures of deliveries. Shown only here.',
      example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
    }),
  })
  .meta({ id: 'WebhookEndpointWithSecret' })
export type WebhookEndpointWithSecret = z.infer<typeof webhookEndpointWithSecret>

export const webhookDelivery = z
  .object({
    id: idParam,
    endpoint_id: idParam,
    event_id: idParam.describe('Sent as `webhook-id`: the same for every attempt.'),
    event_type: z
      .enum([...EVENT_NAMES, TEST_EVENT])
      .meta({ description: 'What happened.', example: 'sale.accepted' }),
    state: z.enum(['pending', 'delivered', 'failed']).describe('A failed one is not tried again by itself.'),
    attempts: z.int().describe('Attempts since it was created or last retried by hand.'),
    next_attempt_at: wireTime.nullable().describe('Null when none is due.'),
    last_attempt_at: wireTime.nullable().describe('Null before the first.'),
    response_status: z.int().nullable().describe('Of the last attempt; null when there was no response.'),
    response_body: z.string().nullable().describe('The start of the last response.'),
    error: z.string().nullable().describe('Why the last attempt failed, for people.').meta({ example: null }),
    attempt_log: z
      .array(
        z.object({
          at: wireTime.describe('When it ended.'),
          response_status: z.int().nullable().describe('Null when there was no response.'),
          error: z.string().nullable().describe('Why it failed, for people.'),
          duration_ms: z.int().describe('How long it took, milliseconds.'),
        }),
      )
      .describe('The last 10 attempts, oldest first.'),
    created_at: wireTime,
    finished_at: wireTime.nullable().describe('When it was delivered or given up.'),
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDelivery = z.infer<typeof webhookDelivery>

export const createWebhookInput = z.strictObject({
  url: endpointUrl,
  events,
  description: description.default(''),
})
export const updateWebhookInput = z.strictObject({
  id: idParam,
  url: endpointUrl.optional(),
  events: events.optional(),
  description: description.optional(),
  enabled: z.boolean().optional().describe('`true` enables it again after any reason but `operator`.'),
})
export const listDeliveriesInput = z.strictObject({
  id: idParam,
  state: z.enum(['pending', 'delivered', 'failed']).optional().describe('Of the deliveries to list.'),
  ...pageInput,
})
export const webhookEndpointPage = pageOf(webhookEndpoint)
export const webhookDeliveryPage = pageOf(webhookDelivery)
