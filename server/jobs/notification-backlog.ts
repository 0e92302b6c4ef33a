import { mailBacklog } from '../notifications/channels/mail/deliver-mails.service.ts'
import { deliveryBacklog } from '../notifications/channels/webhooks/deliveries.service.ts'
import { outboxBacklog } from '../notifications/outbox.service.ts'
import type { Queries } from '../platform/database/database.ts'

const COUNTED = 10_000

/** What waits to be sent to users: events for their channels, webhook deliveries, e-mails. */
export interface NotificationBacklog {
  kind: 'event' | 'webhook' | 'mail'
  /** Counted up to 10,000. */
  waiting: number
  /** How long the first has been due, ms; 0 when none is. Deliveries to endpoints that fail do not count. */
  overdueMs: number
}

/** `now` is in epoch ms. */
export async function notificationBacklog(db: Queries, now: number): Promise<NotificationBacklog[]> {
  const since = (due: number | null) => (due === null ? 0 : Math.max(0, now - due))
  const events = await outboxBacklog(db, COUNTED)
  const webhooks = await deliveryBacklog(db, COUNTED)
  const mails = await mailBacklog(db, COUNTED)
  return [
    { kind: 'event', waiting: events.waiting, overdueMs: since(events.oldest) },
    { kind: 'webhook', waiting: webhooks.waiting, overdueMs: since(webhooks.firstDue) },
    { kind: 'mail', waiting: mails.waiting, overdueMs: since(mails.firstDue) },
  ]
}
