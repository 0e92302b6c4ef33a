import type { App } from '../../server/app.ts'
import type { EventRow } from '../../server/inbox/events.service.ts'
import type { SaleWithSlug } from '../../server/sales/sales.service.ts'
import type { ServiceCaller } from './service-caller.ts'

/** One run of "webhooks replay": the services over the database, the running service, and what was asked for. */
export interface Session {
  app: App
  caller: ServiceCaller
  options: ReplayOptions
  progress: (text: string) => void
}

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

/** An event before it is signed. */
export interface Sendable {
  fixture: string
  /** `null` where no manifest knows it. `text` is for people. */
  expected: { text: string; isMet(outcome: Outcome): boolean | Promise<boolean> } | null
}

/** A signed event, ready to be sent. */
export interface SignedEvent extends Sendable {
  path: '/webhooks/store-sales' | '/webhooks/processor'
  headers: Record<string, string>
  rawBody: Buffer
  /** How the inbox tells it apart. */
  delivery: { scope: string; deliveryId: string }
}
