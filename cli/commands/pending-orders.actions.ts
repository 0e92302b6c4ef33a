import { paidRatesByMerchant } from '../../server/pending-orders/paid-rates.service.ts'
import { wirePendingOrder } from '../../server/pending-orders/pending-order-wire.ts'
import {
  type ExplainedPendingOrder,
  findPendingOrders,
  type ListedPendingOrder,
} from '../../server/pending-orders/pending-orders.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import { withNames } from '../../server/sales/sale-explanation.service.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions } from '../command.ts'
import { reads } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { nameOf, peopleOf, saleScope } from '../lists.ts'
import { displayMoney, type Output, wireTime } from '../terminal/output.ts'
import { money, type RowColumn } from '../terminal/table.ts'

type ListOptions = PageOptions & { state?: ListedPendingOrder['state']; from?: string; to?: string }

export const list = reads(async ({ platform, out, config }, options: ListOptions) => {
  const scope = await saleScope(platform, options)
  const [from, to] = [readMoment(options.from, config), readMoment(options.to, config)]
  if (from !== null && to !== null && from >= to) throw wrongUsage('--from must be before --to.')
  const filter = { state: options.state, offerId: options.offer, from, to }
  const { reader } = platform.database
  const page = await pageById(options, (request) =>
    findPendingOrders(reader, scope, { ...filter, ...request }),
  )
  const items = await withNames(platform, page.items)
  const person = await peopleOf(platform, items, (row) => [row.merchant_id, row.creator_id])
  out.showPage(
    { ...page, items },
    {
      columns: [
        { title: 'Order', cell: (row) => row.order_name },
        { title: 'State', cell: (row) => row.state },
        money('Expected', (row) => row.expected_commission),
        out.moment('Placed', (row) => row.placed_at),
        { title: 'Creator', flexible: true, cell: (row) => nameOf(person(row.creator_id)) },
        { title: 'Store', flexible: true, cell: (row) => row.store.shop_domain },
      ],
      none: 'No pending orders.',
      wire: (row) => ({
        ...wirePendingOrder(row, 'merchant'),
        merchant: person(row.merchant_id),
        creator: person(row.creator_id),
      }),
    },
  )
})

/** More merchants than a person reads. */
const MOST_MERCHANTS = 1000

export const rates = reads(async ({ platform, out }) => {
  const items = await paidRatesByMerchant(platform, MOST_MERCHANTS)
  const person = await peopleOf(platform, items, (row) => row.id)
  const shown = items.map(({ id, placed, decided, paid, rate }) => ({
    merchant: person(id),
    placed,
    decided,
    became_sales: paid,
    paid_rate_90d: rate,
  }))
  const columns: RowColumn<(typeof shown)[number]>[] = [
    { title: 'Merchant', flexible: true, cell: (row) => nameOf(row.merchant) },
    { title: 'Placed', right: true, cell: (row) => row.placed },
    { title: 'Decided', right: true, cell: (row) => row.decided },
    { title: 'Became sales', right: true, cell: (row) => row.became_sales },
    { title: 'Paid', right: true, cell: ({ paid_rate_90d: rate }) => (rate === null ? null : `${rate} %`) },
  ]
  out.show({ items: shown }, () =>
    shown.length === 0 ? ['No pending orders in 90 days.'] : out.table(shown, columns),
  )
})

/** For `--json`: what is known of an order from its placement on. */
export function pendingDocument(pending: ExplainedPendingOrder) {
  const { created_at, state_at } = pending
  return {
    ...wirePendingOrder(pending, 'merchant'),
    reported_at: wireTime(created_at),
    state_at: wireTime(state_at),
  }
}

const ENDS = {
  cancelled: 'The store canceled it.',
  expired: 'It was not paid within PENDING_ORDER_DAYS; a later payment still becomes a sale.',
} as const

/** The moments of a pending order's life up to its sale, if it has one. */
export function pendingMoments(pending: ExplainedPendingOrder): [number, string][] {
  const { state, created_at, state_at, expected_commission } = pending
  const expected = `it would pay a commission of ${displayMoney(expected_commission)}`
  if (state === 'became_sale')
    return [[created_at, 'The store reported it as not paid yet: a pending order.']]
  const placed = `The store reported it as not paid yet: a pending order; ${expected}.`
  return [
    [created_at, placed],
    ...(state === 'pending' ? [] : ([[state_at, ENDS[state]]] as [number, string][])),
  ]
}

/** An order without a sale. */
export function showPending(pending: ExplainedPendingOrder, out: Output): void {
  out.show({ decision: null, pending_order: pendingDocument(pending) }, () => [
    `Order ${pending.order_name} (${pending.order_id}) of ${pending.store.shop_domain}`,
    out.style('yellow', `${pending.state.toUpperCase()}: no sale was decided, and no money has moved.`),
    ...out.pairs([
      ['Placed', out.time(pending.placed_at)],
      ['Offer', pending.offer?.title ?? pending.offer_id],
      ['Creator', pending.creator?.display_name ?? pending.creator_id],
      ['Link', pending.slug],
      ['Expected', displayMoney(pending.expected_commission)],
    ]),
    ...pendingMoments(pending).map(([moment, text]) => `  ${out.time(moment)}  ${text}`),
  ])
}
