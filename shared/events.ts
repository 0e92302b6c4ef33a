interface EventFacts {
  /** The roles that are notified of it. */
  to: readonly ('merchant' | 'creator')[]
  /** What a webhook's `data` holds; the client declares its type. */
  data: string
  /** What its e-mails are about, for the page that stops them. Without it there are none. */
  mail?: string
}

/** The events that accounts are notified of. Mails about the account itself are no events and cannot be turned off. */
export const EVENTS = {
  'application.created': { to: ['merchant'], data: 'application', mail: 'new applications' },
  'application.decided': { to: ['creator'], data: 'application', mail: 'decisions on your applications' },
  'application.withdrawn': { to: ['merchant'], data: 'application' },
  'link.ended': { to: ['creator'], data: 'link', mail: 'links that end' },
  'sale.accepted': { to: ['merchant', 'creator'], data: 'sale', mail: 'your first sale' },
  'sale.rejected': { to: ['merchant'], data: 'sale' },
  'credit_request.decided': {
    to: ['merchant'],
    data: 'credit_request',
    mail: 'decisions on your credit requests',
  },
  'order.pending': { to: ['merchant', 'creator'], data: 'pending_order' },
  'order.cancelled': { to: ['merchant', 'creator'], data: 'pending_order' },
  'billing_cycle.closed': { to: ['merchant'], data: 'billing_cycle', mail: 'invoices' },
  'billing_cycle.charged': { to: ['merchant'], data: 'billing_cycle' },
  'billing_cycle.overdue': { to: ['merchant'], data: 'billing_cycle', mail: 'overdue invoices' },
  'store.silent': { to: ['merchant'], data: 'store', mail: 'stores that send nothing' },
  'store.rejecting': { to: ['merchant'], data: 'store', mail: 'stores whose deliveries are refused' },
  'balance.released': { to: ['creator'], data: 'release' },
  'payout.paid': { to: ['creator'], data: 'payout', mail: 'payouts' },
  'payout.failed': { to: ['creator'], data: 'payout', mail: 'failed payouts' },
  'payout_destination.changed': { to: ['creator'], data: 'destination' },
} as const satisfies Record<string, EventFacts>

export type EventName = keyof typeof EVENTS
export type MailEvent = {
  [Name in EventName]: (typeof EVENTS)[Name] extends { mail: string } ? Name : never
}[EventName]

const sentTo = (role: 'merchant' | 'creator') =>
  (Object.entries(EVENTS) as [EventName, EventFacts][])
    .filter(([, { to }]) => to.includes(role))
    .map(([name]) => name)

export const MERCHANT_EVENTS: readonly EventName[] = sentTo('merchant')
export const CREATOR_EVENTS: readonly EventName[] = sentTo('creator')
export const EVENT_NAMES: readonly EventName[] = [...new Set([...MERCHANT_EVENTS, ...CREATOR_EVENTS])]

/** The events that each role is notified of by e-mail. */
export const MAIL_EVENTS: Record<'merchant' | 'creator' | 'admin', readonly MailEvent[]> = {
  merchant: MERCHANT_EVENTS.filter(isMailEvent),
  creator: CREATOR_EVENTS.filter(isMailEvent),
  admin: [],
}

export const MAIL_EVENT_NAMES: readonly MailEvent[] = EVENT_NAMES.filter(isMailEvent)

export function isMailEvent(kind: string): kind is MailEvent {
  return Object.hasOwn(EVENTS, kind) && 'mail' in EVENTS[kind as EventName]
}
