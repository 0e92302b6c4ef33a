import type { IncomingHttpHeaders } from 'node:http'

/** Shopify's two forms of header names, in the order in which they are read: `shopify-topic` comes before `x-shopify-topic`. */
const PREFIXES = ['shopify-', 'x-shopify-']
const MAX_HEADER_TEXT = 255

/**
 * A header of a delivery, such as `topic`, in the first form that is present. A value that is empty, too long or has a NUL counts as
 * absent.
 */
export function deliveryHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  return PREFIXES.map((prefix) => headers[prefix + name]).find(isUsable)
}

function isUsable(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_HEADER_TEXT && !value.includes('\0')
}

/**
 * The sender's id of a delivery, the same on its retries. Without a webhook id the event id stands for it, together with the topic, because
 * the subscriptions of several topics share one event id. `undefined` without either.
 */
export function deliveryIdOf(headers: IncomingHttpHeaders): string | undefined {
  const webhookId = deliveryHeader(headers, 'webhook-id')
  if (webhookId !== undefined) return webhookId
  const eventId = deliveryHeader(headers, 'event-id')
  return eventId && `${eventId} ${deliveryHeader(headers, 'topic')?.toLowerCase() ?? ''}`.trim()
}
