import type { Role } from './schemas/common.ts'

/** The events that each role is notified of by e-mail. Mails about the account itself cannot be turned off. */
export const MAIL_EVENTS = {
  merchant: [
    'application.created',
    'sale.accepted',
    'billing_cycle.closed',
    'billing_cycle.overdue',
    'store.silent',
    'store.rejecting',
  ],
  creator: ['application.decided', 'sale.accepted', 'payout.paid', 'payout.failed'],
  admin: [],
} as const satisfies Record<Role, readonly string[]>

export type MailEvent = (typeof MAIL_EVENTS)[Role][number]

export const MAIL_EVENT_NAMES: readonly MailEvent[] = [
  ...new Set([...MAIL_EVENTS.merchant, ...MAIL_EVENTS.creator]),
]

export function isMailEvent(kind: string): kind is MailEvent {
  return MAIL_EVENT_NAMES.includes(kind as MailEvent)
}
