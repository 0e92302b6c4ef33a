import { z } from 'zod'
import { idInput, listInput } from '../../../../shared/schemas/common.ts'
import {
  createWebhookInput,
  listDeliveriesInput,
  updateWebhookInput,
  webhookDelivery,
  webhookDeliveryPage,
  webhookEndpoint,
  webhookEndpointPage,
  webhookEndpointWithSecret,
} from '../../../../shared/schemas/webhooks.ts'
import { mapPage } from '../../../platform/api/page.ts'
import { procedure, router } from '../../../platform/api/procedure.ts'
import { listDeliveries, retryDelivery, sendTestEvent } from './deliveries.service.ts'
import {
  createEndpoint,
  getEndpoint,
  listEndpoints,
  removeEndpoint,
  rotateEndpointSecret,
  updateEndpoint,
} from './endpoints.service.ts'
import { wireDelivery, wireEndpoint, wireEndpointWithSecret } from './webhooks-wire.ts'

const OWNERS = ['merchant', 'creator'] as const

export const webhooksRouter = router({
  create: procedure(OWNERS, {
    rest: { method: 'POST', path: '/webhook-endpoints', status: 201 },
    creates: true,
    summary: 'Add a webhook endpoint',
    description:
      'Events of your account are sent to it, signed as Standard Webhooks describes. The secret is shown only here. At most 10 per account.',
    errors: ['quota_exceeded'],
    details: {
      quota_exceeded: 'At most 10 webhook endpoints per account. Remove one before you add another.',
    },
  })
    .input(createWebhookInput)
    .output(webhookEndpointWithSecret)
    .mutation(async ({ ctx, input }) =>
      wireEndpointWithSecret(await createEndpoint(ctx.platform, ctx.actor, input)),
    ),

  list: procedure(OWNERS, {
    rest: { method: 'GET', path: '/webhook-endpoints' },
    summary: 'List own webhook endpoints',
  })
    .input(listInput)
    .output(webhookEndpointPage)
    .query(async ({ ctx, input }) =>
      mapPage(await listEndpoints(ctx.platform, ctx.actor.userId, input), wireEndpoint),
    ),

  get: procedure(OWNERS, {
    rest: { method: 'GET', path: '/webhook-endpoints/:id' },
    summary: 'Get one of your own webhook endpoints',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(webhookEndpoint)
    .query(async ({ ctx, input }) =>
      wireEndpoint(await getEndpoint(ctx.platform, ctx.actor.userId, input.id)),
    ),

  update: procedure(OWNERS, {
    rest: { method: 'PATCH', path: '/webhook-endpoints/:id' },
    summary: 'Change, disable or enable a webhook endpoint',
    description:
      'While it is disabled, no deliveries are made for it, and pending ones fail. Refused with `conflict` when an operator disabled it.',
    errors: ['not_found', 'conflict'],
    details: { conflict: 'An operator disabled this endpoint. Ask the operator to enable it.' },
  })
    .input(updateWebhookInput)
    .output(webhookEndpoint)
    .mutation(async ({ ctx, input: { id, ...change } }) =>
      wireEndpoint(await updateEndpoint(ctx.platform, ctx.actor, id, change)),
    ),

  remove: procedure(OWNERS, {
    rest: { method: 'DELETE', path: '/webhook-endpoints/:id', status: 204 },
    summary: 'Remove a webhook endpoint',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(z.void())
    .mutation(({ ctx, input }) => removeEndpoint(ctx.platform, ctx.actor, input.id)),

  rotate: procedure(OWNERS, {
    rest: { method: 'POST', path: '/webhook-endpoints/:id/rotate' },
    creates: true,
    summary: "Replace a webhook endpoint's secret",
    description:
      'Deliveries are signed with both secrets for 24 hours. Rotating again before that ends the older secret.',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(webhookEndpointWithSecret)
    .mutation(async ({ ctx, input }) =>
      wireEndpointWithSecret(await rotateEndpointSecret(ctx.platform, ctx.actor, input.id)),
    ),

  deliveries: procedure(OWNERS, {
    rest: { method: 'GET', path: '/webhook-endpoints/:id/deliveries' },
    summary: "List a webhook endpoint's deliveries of the last 30 days",
    errors: ['not_found'],
  })
    .input(listDeliveriesInput)
    .output(webhookDeliveryPage)
    .query(async ({ ctx, input: { id, ...query } }) =>
      mapPage(await listDeliveries(ctx.platform, ctx.actor.userId, id, query), wireDelivery),
    ),

  retry: procedure(OWNERS, {
    rest: { method: 'POST', path: '/webhook-deliveries/:id/retry', status: 202 },
    creates: true,
    summary: 'Make a webhook delivery again',
    description: 'It keeps its event id. Refused with `conflict` while the endpoint is disabled.',
    errors: ['not_found', 'conflict'],
    details: { conflict: 'The endpoint is disabled. Enable it first.' },
  })
    .input(idInput)
    .output(webhookDelivery)
    .mutation(async ({ ctx, input }) =>
      wireDelivery(await retryDelivery(ctx.platform, ctx.actor.userId, input.id)),
    ),

  test: procedure(OWNERS, {
    rest: { method: 'POST', path: '/webhook-endpoints/:id/test', status: 202 },
    creates: true,
    summary: 'Send a test event to a webhook endpoint',
    description:
      'The event `webhook.test`, with the id of the endpoint as its data. Refused with `conflict` while the endpoint is disabled.',
    errors: ['not_found', 'conflict'],
    details: { conflict: 'The endpoint is disabled. Enable it first.' },
  })
    .input(idInput)
    .output(webhookDelivery)
    .mutation(async ({ ctx, input }) =>
      wireDelivery(await sendTestEvent(ctx.platform, ctx.actor.userId, input.id)),
    ),
})
