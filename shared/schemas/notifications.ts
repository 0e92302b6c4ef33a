import { z } from 'zod'
import type { Role } from './common.ts'

/** The events that each role is notified of by e-mail. Mails about the account itself cannot be turned off. */
export const MAIL_EVENTS = {
  merchant: [
    'application.created',
    'sale.accepted',
    'billing_cycle.closed',
    'billing_cycle.overdue',
    'store.silent',
  ],
  creator: ['application.decided', 'sale.accepted', 'payout.paid', 'payout.failed'],
  admin: [],
} as const satisfies Record<Role, readonly string[]>

export type MailEvent = (typeof MAIL_EVENTS)[Role][number]

const EVENTS: readonly MailEvent[] = [...new Set([...MAIL_EVENTS.merchant, ...MAIL_EVENTS.creator])]

export function isMailEvent(kind: string): kind is MailEvent {
  return EVENTS.includes(kind as MailEvent)
}

/** Choices by event: `true` sends an e-mail. */
const choices = z.strictObject(
  Object.fromEntries(EVENTS.map((event) => [event, z.boolean().optional()])) as Record<
    MailEvent,
    z.ZodOptional<z.ZodBoolean>
  >,
)

const DESCRIPTION =
  "Which events are notified by e-mail; only those of the account's role. `sale.accepted` is the first accepted sale."

export const notifications = z
  .object({ email: choices.describe(DESCRIPTION) })
  .meta({ id: 'Notifications', example: { email: { 'application.decided': true, 'payout.paid': false } } })
export type Notifications = z.infer<typeof notifications>

export const updateNotificationsInput = z.strictObject({
  email: choices.describe('The events to change; others stay as they are.'),
})
