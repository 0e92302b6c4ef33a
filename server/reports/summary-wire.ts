import { CURRENCY, formatMoney } from '../../shared/money.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../shared/schemas/summaries.ts'
import { isoTime } from '../platform/clock.ts'
import type { CreatorSummary, MerchantSummary, Outcomes } from './summaries.service.ts'

export function wireCreatorSummary({ visits, sales, balance, next }: CreatorSummary): CreatorSummaryWire {
  return {
    role: 'creator',
    clicks: visits.all,
    unique_clicks: visits.unique,
    sales: wireOutcomes(sales),
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

export function wireMerchantSummary(summary: MerchantSummary): MerchantSummaryWire {
  const { sales, account } = summary
  return {
    role: 'merchant',
    sales: wireOutcomes(sales),
    open_cycle: wireOpenCycle(summary),
    receivable: formatMoney(account.receivable),
    available_credit: formatMoney(account.availableCredit),
    currency: CURRENCY,
  }
}

function wireOpenCycle({ account, byOffer, byCreator }: MerchantSummary): MerchantSummaryWire['open_cycle'] {
  const { openCycle: cycle, expected } = account
  return (
    cycle && {
      id: cycle.id,
      period_start: isoTime(cycle.period_start),
      period_end: isoTime(cycle.period_end),
      sales: cycle.sales_count,
      commission_total: formatMoney(cycle.commission_total),
      fee_total: formatMoney(cycle.fee_total),
      expected_credit: formatMoney(expected?.creditTotal ?? 0),
      expected_amount_due: formatMoney(expected?.amountDue ?? 0),
      by_offer: byOffer.map(({ offer_id, title, sales, commission, platform_fee }) => ({
        offer_id,
        title,
        sales,
        commission: formatMoney(commission),
        platform_fee: formatMoney(platform_fee),
      })),
      by_creator: byCreator.map(({ creator_id, displayName, sales, commission }) => ({
        creator_id,
        display_name: displayName,
        sales,
        commission: formatMoney(commission),
      })),
    }
  )
}

function wireOutcomes(sales: Outcomes) {
  return {
    from: isoTime(sales.from),
    to: isoTime(sales.to),
    accepted: sales.accepted,
    attributed_by: { coupon: sales.byCoupon, click: sales.accepted - sales.byCoupon },
    commission: formatMoney(sales.commission),
    rejected: sales.rejected,
    rejected_by_reason: sales.byReason,
  }
}
