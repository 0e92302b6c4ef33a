export interface ReplayOptions {
  url?: string
  allowRemote?: boolean
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

/** A signed event, ready to be sent. */
export interface SignedEvent {
  fixture: string
  path: '/webhooks/store-sales' | '/webhooks/processor'
  headers: Record<string, string>
  rawBody: Buffer
  /** How the inbox tells it apart. */
  delivery: { scope: string; deliveryId: string }
  /** What the manifest says that it must lead to; `null` where no manifest knows it. */
  expected: string | null
}

/** What was answered to an event, and what it led to. */
