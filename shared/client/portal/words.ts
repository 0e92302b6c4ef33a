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
}
