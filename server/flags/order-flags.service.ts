import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type FlagKind, openFlags, raiseFlags } from './flags.service.ts'

/** The evidence lists the latest orders only. */
const MAX_ORDERS_LISTED = 20

/** A report of an order that an operator should review. */
export interface OrderNote {
  storeId: string
  merchantId: string
  /** For the evidence: plain data without buyers' details. */
  order: { sale_id: string; order_id: string } & Record<string, unknown>
}

interface OrderEvidence {
  merchant_id: string
  reports: number
  latest_orders: OrderNote['order'][]
}

const SUMMARIES = {
  order_changed: (reports: number) =>
    reports === 1
      ? 'A store reported a known order again with a different reference, code, amount or date.'
      : `A store reported known orders again with a different reference, code, amount or date: ${reports} reports.`,
  order_date_suspicious: (reports: number) =>
    reports === 1
      ? 'A store reported an order whose creation time cannot be right, precedes the coupon code or is unusually old.'
      : `A store reported orders whose creation time cannot be right, precedes the coupon code or is unusually old: ${reports} reports.`,
} satisfies Partial<Record<FlagKind, (reports: number) => string>>

/** Raises a flag for each store, or adds to its open one. */
export async function flagOrders(
  platform: Platform,
  tx: Tx,
  kind: keyof typeof SUMMARIES,
  notes: readonly OrderNote[],
): Promise<void> {
  const flags = []
  for (const [storeId, ofStore] of Map.groupBy(notes, (note) => note.storeId)) {
    const [open] = await openFlags(tx, kind, storeId)
    const former = open ? (JSON.parse(open.evidence) as OrderEvidence) : { reports: 0, latest_orders: [] }
    const reports = former.reports + ofStore.length
    const evidence: OrderEvidence = {
      merchant_id: ofStore[0]?.merchantId ?? '',
      reports,
      latest_orders: [...former.latest_orders, ...ofStore.map((note) => note.order)].slice(
        -MAX_ORDERS_LISTED,
      ),
    }
    flags.push({
      kind,
      subjectType: 'store' as const,
      subjectId: storeId,
      summary: SUMMARIES[kind](reports),
      evidence: { ...evidence },
    })
  }
  await raiseFlags(platform, tx, flags)
}
