import { DAY_MS } from '../../shared/durations.ts'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../shared/schemas/summaries.ts'
import { merchantAccount } from '../billing/billing.service.ts'
import { countVisits, type Visits } from '../clicks/clicks.service.ts'
import { creatorBalance } from '../ledger/ledger.service.ts'
import { nextPayout } from '../payouts/payout-run.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime, type periodOf } from '../platform/clock.ts'
import type { Queries } from '../platform/database/database.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { countOutcomes, countPending, ownLinkIds, topCreators, topOffers } from './summaries.store.ts'

const USUAL_DAYS = 30
/** What a caller can have counted at once. */
const MOST_DAYS = 366

/** Which sales are counted. */
export type AskedPeriod = ReturnType<typeof periodOf>

/** What has come of a creator's links. Refuses with `validation_failed` a period that ends before it begins, or is too long. */
export async function creatorSummary(
  platform: Platform,
  creatorId: string,
  asked: AskedPeriod,
): Promise<CreatorSummaryWire> {
  const { reader } = platform.database
  const sales = await outcomesOf(platform, { creatorId }, asked)
  const visits = await ownVisits(reader, creatorId)
  const balance = await creatorBalance(reader, creatorId)
  const next = await nextPayout(platform, creatorId)
  return {
    role: 'creator',
    clicks: visits.all,
    unique_clicks: visits.unique,
    sales,
    ...(await pendingOf(reader, { creatorId })),
    pending: formatMoney(balance.pending),
    released: formatMoney(balance.released),
    in_transit: formatMoney(balance.inTransit),
    paid: formatMoney(balance.paid),
    payout_threshold: formatMoney(next.threshold),
    next_payout: {
      amount: formatMoney(next.amount),
      waits_for: next.waitsFor,
      missing: formatMoney(Math.max(0, next.threshold - next.amount)),
      replaces_failed: next.replacesFailed,
    },
    currency: CURRENCY,
  }
}

/** Where a merchant stands; `top` offers and creators at most. Refuses as `creatorSummary` does. */
export async function merchantSummary(
  platform: Platform,
  merchantId: string,
  asked: AskedPeriod,
  top: number,
): Promise<MerchantSummaryWire> {
  const { reader } = platform.database
  const sales = await outcomesOf(platform, { merchantId }, asked)
  const account = await merchantAccount(reader, merchantId)
  const { openCycle: cycle, expected, receivable, availableCredit } = account
  return {
    role: 'merchant',
    sales,
    ...(await pendingOf(reader, { merchantId })),
    open_cycle: cycle && {
      id: cycle.id,
      period_start: isoTime(cycle.period_start),
      period_end: isoTime(cycle.period_end),
      sales: cycle.sales_count,
      commission_total: formatMoney(cycle.commission_total),
      fee_total: formatMoney(cycle.fee_total),
      expected_credit: formatMoney(expected?.creditTotal ?? 0),
      expected_amount_due: formatMoney(expected?.amountDue ?? 0),
      ...(await bestOf(reader, cycle.id, top)),
    },
    receivable: formatMoney(receivable),
    available_credit: formatMoney(availableCredit),
    currency: CURRENCY,
  }
}

/** The offers and creators of a cycle, most commission first. */
async function bestOf(db: Queries, cycleId: string, top: number) {
  const offers = await topOffers(db, cycleId, top)
  const creators = await topCreators(db, cycleId, top)
  return {
    by_offer: offers.map((offer) => ({
      ...offer,
      commission: formatMoney(offer.commission),
      platform_fee: formatMoney(offer.platform_fee),
    })),
    by_creator: creators.map((creator) => ({ ...creator, commission: formatMoney(creator.commission) })),
  }
}

async function pendingOf(db: Queries, scope: OwnScope) {
  const { orders, commission } = await countPending(db, scope)
  return { pending_orders: orders, expected_commission: formatMoney(commission) }
}

async function outcomesOf(platform: Platform, scope: OwnScope, asked: AskedPeriod) {
  const { from, to } = periodAsked(platform, asked)
  const rows = await countOutcomes(platform.database.reader, scope, { from, to: asked.to })
  const accepted = rows.find((row) => row.rejection_reason === null)
  const byReason = rows.flatMap(({ rejection_reason: reason, sales }) =>
    reason === null ? [] : [{ reason, sales }],
  )
  const byCoupon = accepted?.by_coupon ?? 0
  return {
    from: isoTime(from),
    to: isoTime(to),
    accepted: accepted?.sales ?? 0,
    attributed_by: { coupon: byCoupon, click: (accepted?.sales ?? 0) - byCoupon },
    commission: formatMoney(accepted?.commission ?? 0),
    rejected: byReason.reduce((sum, { sales }) => sum + sales, 0),
    /** The most frequent first. */
    rejected_by_reason: byReason,
  }
}

/** The period that was asked for, by default the last 30 days. Refuses as `creatorSummary` does. */
export function periodAsked({ clock }: Platform, asked: AskedPeriod): { from: number; to: number } {
  const to = asked.to ?? clock.now()
  const from = asked.from ?? to - USUAL_DAYS * DAY_MS
  refusePeriod(from, to)
  return { from, to }
}

function refusePeriod(from: number, to: number): void {
  const wrong = (path: string, message: string) =>
    new Refusal('validation_failed', 'There is no such period.', { issues: [{ path, message }] })
  if (from < 0 || to < 0) throw wrong(from < 0 ? 'from' : 'to', 'must not be before 1970')
  if (from > to) throw wrong('from', 'must not be after `to`')
  if (to - from > MOST_DAYS * DAY_MS)
    throw wrong('from', `must not be more than ${MOST_DAYS} days before \`to\``)
}

async function ownVisits(db: Queries, creatorId: string): Promise<Visits> {
  const visits = { all: 0, unique: 0 }
  const counted = await countVisits(db, await ownLinkIds(db, { creatorId }))
  for (const { all, unique } of counted.values()) {
    visits.all += all
    visits.unique += unique
  }
  return visits
}
