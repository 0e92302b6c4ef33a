import { key } from './text.ts'

type Tone = '' | 'good' | 'warn' | 'bad'

/** What the enum values of the wire are called. */
export const WORDS: Record<string, [text: string, tone: Tone]> = {
  accepted: [key('Accepted'), 'good'],
  rejected: [key('Rejected'), 'bad'],
  pending: [key('Pending'), 'warn'],
  approved: [key('Approved'), 'good'],
  withdrawn: [key('Withdrawn'), ''],
  draft: [key('Draft'), ''],
  live: [key('Live'), 'good'],
  paused: [key('Paused'), 'warn'],
  ended: [key('Ended'), ''],
  active: [key('Active'), 'good'],
  not_required: [key('Not required'), ''],
  open: [key('Open'), ''],
  closed: [key('Closed'), 'warn'],
  charged: [key('Paid'), 'good'],
  submitted: [key('On its way'), 'warn'],
  paid: [key('Paid'), 'good'],
  failed: [key('Failed'), 'bad'],
  became_sale: [key('Became a sale'), 'good'],
  cancelled: [key('Canceled'), 'bad'],
  expired: [key('Expired'), ''],
  resolved: [key('Resolved'), 'good'],
  low: [key('Low'), ''],
  medium: [key('Medium'), 'warn'],
  high: [key('High'), 'bad'],
  merchant: [key('Merchant'), ''],
  creator: [key('Creator'), ''],
  admin: [key('Admin'), ''],
  read: [key('Read'), ''],
  write: [key('Read and write'), 'warn'],
}

/** What the e-mails are about, by event. */
export const EVENT_WORDS: Record<string, string> = {
  'application.created': key('New applications'),
  'application.decided': key('Decisions on your applications'),
  'link.ended': key('Links that end'),
  'sale.accepted': key('Your first sale'),
  'credit_request.decided': key('Decisions on your credit requests'),
  'billing_cycle.closed': key('Invoices'),
  'billing_cycle.overdue': key('Overdue invoices'),
  'store.silent': key('Stores that send nothing'),
  'store.rejecting': key('Stores whose deliveries are refused'),
  'payout.paid': key('Payouts'),
  'payout.failed': key('Failed payouts'),
}
