import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type FlagKind, type NewFlag, openFlags, raiseFlags } from './flags.service.ts'

/** The evidence lists the latest orders only. */
const MAX_ORDERS_LISTED = 20

/** A report of an order that an operator should review. */
export interface OrderNote {
  storeId: string
  merchantId: string
  /** For the evidence: plain data without buyers' details. */
  order: { sale_id: string; order_id: string } & Record<string, unknown>
}

/** Of one report, and of several. */
const SUMMARIES = {
  order_changed: [
    'A store reported a known order again as refunded or canceled, or with a different reference, code, amount or date.',
    'A store reported known orders again as refunded or canceled, or with a different reference, code, amount or date',
  ],
  order_date_suspicious: [
    'A store reported an order whose creation time cannot be right, precedes the coupon code or is unusually old.',
    'A store reported orders whose creation time cannot be right, precedes the coupon code or is unusually old',
  ],
  order_unclear: [
    'A store reported an order that does not tell what it earns (the product of a line, a discount, a refund, or a sum that differs from its lines).',
    'A store reported orders that do not tell what they earn (the product of a line, a discount, a refund, or a sum that differs from its lines)',
  ],
} satisfies Partial<Record<FlagKind, [string, string]>>

/** Raises a flag for each store, or adds to its open one; with `once` only what that does not list. */
export async function flagOrders(
  platform: Platform,
  tx: Tx,
  kind: keyof typeof SUMMARIES,
  notes: readonly OrderNote[],
  { once = false } = {},
): Promise<void> {
  const flags: NewFlag[] = []
  for (const [storeId, ofStore] of Map.groupBy(notes, (note) => note.storeId)) {
    const [open] = await openFlags(tx, kind, storeId)
    const former = JSON.parse(open?.evidence ?? '{"reports": 0, "latest_orders": []}')
    const listed = new Set(once ? former.latest_orders.map(factsOf) : [])
    const added = ofStore.filter(({ order }) => !listed.has(factsOf(order)))
    if (added.length === 0) continue
    const reports: number = former.reports + added.length
    const orders = [...former.latest_orders, ...added.map((note) => note.order)]
    const [one, several] = SUMMARIES[kind]
    flags.push({
      kind,
      subjectType: 'store',
      subjectId: storeId,
      summary: reports === 1 ? one : `${several}: ${reports} reports.`,
      evidence: {
        merchant_id: ofStore[0]?.merchantId,
        reports,
        latest_orders: orders.slice(-MAX_ORDERS_LISTED),
      },
    })
  }
  await raiseFlags(platform, tx, flags)
}

/** What a listed order says, whichever event reported it. */
function factsOf({ event_id: _, ...facts }: OrderNote['order']): string {
  return JSON.stringify(facts)
}
