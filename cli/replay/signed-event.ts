import type { EventRow } from '../../server/inbox/events.service.ts'
import type { SaleWithSlug } from '../../server/sales/sales.service.ts'

export interface ReplayOptions {
  url?: string
  allowRemote?: boolean
  /** Every fixture of stores and processor. */
  all?: boolean
  /** The fixtures' own order ids and names, not new ones. */
  same?: boolean
  link?: string
  store?: string
  eventId?: string
  cycle?: string
  payout?: string
  /** A file, or `-` for stdin. */
  body?: string
  /** Who sends the file. */
  as: 'store' | 'processor'
  times: number
  shuffle?: boolean
  corrupt?: 'signature' | 'body' | 'timestamp'
}

/** What became of an event: its row in the inbox and its sale, each `null` where there is none. */
export interface Outcome {
  event: EventRow | null
  sale: SaleWithSlug | null
}

export interface Expectation {
  /** For people. */
  text: string
  isMet(outcome: Outcome): boolean | Promise<boolean>
}

/** A signed event, ready to be sent. */
export interface SignedEvent {
  fixture: string
  path: '/webhooks/store-sales' | '/webhooks/processor'
  headers: Record<string, string>
  rawBody: Buffer
  /** How the inbox tells it apart. */
  delivery: { scope: string; deliveryId: string }
  /** `null` where no manifest knows it. */
  expected: Expectation | null
}
