import { formatMoney } from '../../../shared/money.ts'
import type { ObjectKind, ObjectStatus, SandboxStore } from './sandbox.store.ts'
import type { SandboxSwitches } from './switches.ts'

interface StateObject {
  id: string
  reference: string
  /** Decimal rupees. */
  amount: string
  currency: string
  status: ObjectStatus
  created_at: string
}

interface StateEvent {
  /** The webhook-id. */
  id: string
  object_id: string
  body: unknown
  due_at: string
  attempts: number
  copies_sent: number
  delivered_at: string | null
}

/** Everything in the sandbox, oldest first: the answer of GET /_sandbox/state. */
export interface SandboxState {
  invoices: StateObject[]
  payouts: StateObject[]
  events: StateEvent[]
  switches: SandboxSwitches
}

/** `now` in epoch ms: events that are due by then are settled first. */
export function readState(store: SandboxStore, now: number): SandboxState {
  store.settle(now)
  const objects = (kind: ObjectKind): StateObject[] =>
    store.objects(kind).map(({ id, reference, amount, currency, status, created_at }) => {
      return { id, reference, amount: formatMoney(amount), currency, status, created_at: isoTime(created_at) }
    })
  const events = store.events().map(
    (event): StateEvent => ({
      id: event.id,
      object_id: event.object_id,
      body: JSON.parse(event.body),
      due_at: isoTime(event.due_at),
      attempts: event.attempts,
      copies_sent: event.copies_sent,
      delivered_at: event.delivered_at === null ? null : isoTime(event.delivered_at),
    }),
  )
  return { invoices: objects('invoice'), payouts: objects('payout'), events, switches: store.switches() }
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}
