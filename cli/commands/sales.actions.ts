import {
  type ExplainedPendingOrder,
  findPendingOrder,
} from '../../server/pending-orders/pending-orders.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import { Refusal } from '../../server/platform/api/refusal.ts'
import {
  explainSale,
  findOrder,
  findSetAsideOrders,
  type OrderCandidate,
  type SetAsideOrder,
} from '../../server/sales/sale-explanation.service.ts'
import { wireSale } from '../../server/sales/sale-wire.ts'
import { findSales, type SaleWithSlug } from '../../server/sales/sales.service.ts'
import { shopDomainsOf } from '../../server/stores/stores.service.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions } from '../command.ts'
import { reads } from '../context.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { nameOf, peopleOf, saleScope } from '../lists.ts'
import { idEndingWith } from '../short-ids.ts'
import { type Output, wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'
import { showPending } from './pending-orders.actions.ts'
import { explanationDocument, explanationLines } from './sale-explanation.ts'

type ListOptions = PageOptions & { status?: SaleWithSlug['acceptance_status']; from?: string; to?: string }

export const list = reads(async ({ platform, out, config }, options: ListOptions) => {
  const scope = await saleScope(platform, options)
  const [from, to] = [readMoment(options.from, config), readMoment(options.to, config)]
  if (from !== null && to !== null && from >= to) throw wrongUsage('--from must be before --to.')
  const filter = { columns: { acceptance_status: options.status, offer_id: options.offer }, from, to }
  const { reader } = platform.database
  const page = await pageById(options, (request) => findSales(reader, scope, { ...filter, ...request }))
  const person = await peopleOf(platform, page.items, (sale) => [sale.merchant_id, sale.creator_id])
  const storeIds = new Set(page.items.map((sale) => sale.store_id))
  const domains = await shopDomainsOf(reader, [...storeIds])
  out.showPage(page, {
    columns: [
      { title: 'Order', cell: (sale) => sale.order_name ?? sale.order_id },
      {
        title: 'Decision',
        flexible: true,
        least: 21,
        cell: (sale) => sale.rejection_reason ?? sale.acceptance_status,
      },
      money('Commission', (sale) => sale.commission),
      out.moment('Recorded', (sale) => sale.created_at),
      { title: 'Creator', flexible: true, cell: ({ creator_id: id }) => id && nameOf(person(id)) },
      money('Net', (sale) => sale.net_amount),
      { title: 'Id', cell: (sale) => sale.id },
      money('Fee', (sale) => sale.platform_fee),
      { title: 'Store', flexible: true, cell: ({ store_id: id }) => domains.get(id) ?? id },
    ],
    none: 'No sales.',
    wire: (sale) => ({
      ...wireSale(sale, 'merchant'),
      store: { id: sale.store_id, shop_domain: domains.get(sale.store_id) ?? null },
      merchant: person(sale.merchant_id),
      creator: sale.creator_id === null ? null : person(sale.creator_id),
    }),
  })
})

type ExplainOptions = { store?: string | null; all?: boolean }

export const explain = reads(
  async ({ platform, out }, order: string, { store = null, all = false }: ExplainOptions) => {
    let setAside: SetAsideOrder[] = []
    let waiting: ExplainedPendingOrder[] = []
    const candidates = await findOrder(platform, order, store).catch(async (error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      waiting = await findPendingOrder(platform, order, store)
      setAside = await findSetAsideOrders(platform, order, store)
      if (waiting.length + setAside.length > 0) return []
      // A name or order id, which may look like one, comes before the end of a sale's id.
      const saleId = await idEndingWith(platform.database.reader, ['sales'], order)
      if (saleId === null) throw error
      return findOrder(platform, saleId, store)
    })
    const [pending] = waiting
    if (pending && waiting.length === 1) return showPending(pending, out)
    if (waiting.length > 0) throw ambiguous(order, waiting.map(candidateOf), out)
    if (setAside.length > 0) return showSetAside(setAside, out)
    const [only] = candidates
    if (!only || candidates.length > 1) throw ambiguous(order, candidates, out)
    const explanation = await explainSale(platform, 'all', only.id)
    const [placed = null] = await findPendingOrder(platform, only.order_id, only.store_id)
    out.show(explanationDocument(explanation, placed), () => explanationLines(explanation, placed, out, all))
  },
)

function showSetAside(orders: readonly SetAsideOrder[], out: Output): void {
  const items = orders.map((order) => ({
    event_id: order.id,
    order_id: order.order_id,
    order_name: order.order_name,
    store: { id: order.scope, shop_domain: order.shopDomain },
    reason: order.reason ?? '',
    received_at: wireTime(order.received_at),
  }))
  out.show({ decision: null, set_aside: items }, () =>
    orders.flatMap((order) => [
      `Order ${order.order_name ?? order.order_id} (${order.order_id ?? 'id unknown'}) of ${order.shopDomain ?? order.scope}`,
      out.style('red', 'SET ASIDE: no sale was decided, because the order could not be read.'),
      ...out.pairs([
        ['Reason', order.reason ?? ''],
        ['Received', out.time(order.received_at)],
        ['Event', order.id],
        ['More', `affiliate webhooks show ${order.id}`],
      ]),
    ]),
  )
}

/** An order that a name may stand for. Of a pending order, its state stands for the decision. */
type Candidate = Pick<
  OrderCandidate,
  'order_id' | 'order_name' | 'store_id' | 'created_at' | 'shopDomain'
> & {
  id: string | null
  acceptance_status: string
}

function candidateOf(pending: ExplainedPendingOrder): Candidate {
  const { store, state, order_id, order_name, store_id, created_at } = pending
  const named = { order_id, order_name, store_id, created_at, shopDomain: store.shop_domain }
  return { ...named, id: null, acceptance_status: state }
}

function ambiguous(order: string, found: readonly Candidate[], out: Output): Failure {
  const candidates = found.map(({ id: sale_id, order_id, order_name, store_id, shopDomain: shop_domain }) => {
    return { sale_id, order_id, order_name, store_id, shop_domain }
  })
  const lines = found.map(
    ({ order_name, order_id, shopDomain, store_id, acceptance_status, created_at }) =>
      `  ${order_name ?? ''}  ${order_id}  ${shopDomain ?? ''}  ${store_id}  ${acceptance_status} ${out.time(created_at)}`,
  )
  return new Failure(
    `${order} stands for ${found.length} orders. Give the order id, or name the store by host name or id with --store.`,
    { extra: { candidates }, lines },
  )
}
