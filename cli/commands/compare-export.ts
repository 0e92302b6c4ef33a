import { open } from 'node:fs/promises'
import type { Platform } from '../../server/platform/platform.ts'
import {
  compareOrders,
  type ListedOrder,
  type OrderComparison,
} from '../../server/sales/compare-orders.service.ts'
import { readOrderExport, UnreadableExport } from '../../server/shopify/order-export.ts'
import { displayMoney, formatMoney } from '../../shared/money.ts'
import { Failure } from '../failures.ts'
import { type Output, wireTime } from '../terminal/output.ts'

export interface CompareOptions {
  limit: number
  all?: boolean
}

/** Compares an order export of Shopify with the sales, and shows what is missing. */
export async function compareExport(
  platform: Platform,
  out: Output,
  domain: string,
  file: string,
  { limit, all = false }: CompareOptions,
): Promise<void> {
  const unusable = (why: string) => new Failure(`${file}: ${why}`)
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    throw unusable(error.code === 'ENOENT' ? 'There is no such file.' : error.message)
  })
  try {
    if ((await handle.stat()).isDirectory()) {
      throw unusable('It is a folder. Name the CSV file that Shopify has exported.')
    }
    const bytes = handle.createReadStream({ autoClose: false })
    const comparison = await compareOrders(platform, readOrderExport(bytes), {
      store: domain,
      limit,
      all,
      progress: (orders) => out.progress(`${orders.toLocaleString('en')} orders compared`),
    })
    out.show(documentOf(domain, comparison), () => lines(comparison, out))
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException
    throw error instanceof UnreadableExport || syscall === 'read' ? unusable(message) : error
  } finally {
    await handle.close()
  }
}

function lines(found: OrderComparison, out: Output): string[] {
  const { neverReported, rejected, otherAmounts } = found
  const paid = found.orders - found.notPaid - found.beforeConnection
  const reasons = Object.entries(rejected.reasons)
    .sort(([, one], [, other]) => other - one)
    .map(([reason, orders]) => `${reason} ${orders}`)
    .join(', ')
  return [
    ...out.pairs([
      ['Orders', `${found.orders} in the file, ${paid} of them paid since the store was connected`],
      ['Not paid', `${found.notPaid} (or canceled, or refunded in full)`],
      ['Earlier', `${found.beforeConnection} paid before the store was connected`],
      ['Accepted', String(found.accepted)],
      ['Rejected', `${rejected.count}${reasons === '' ? '' : `: ${reasons}`}`],
    ]),
    ...section(out, 'Never reported', neverReported, 'Why', ({ setAside }) =>
      setAside === null ? 'no event arrived' : `set aside: ${setAside}`,
    ),
    ...section(out, 'Reported and rejected', rejected, 'Why', ({ reason }) => reason),
    ...section(out, 'Reported with another subtotal', otherAmounts, 'Reported', ({ reported }) =>
      displayMoney(reported),
    ),
  ]
}

function section<Item extends ListedOrder>(
  out: Output,
  title: string,
  { count, items }: { count: number; items: readonly Item[] },
  more: string,
  cell: (item: Item) => string,
): string[] {
  if (items.length === 0)
    return ['', `${out.heading(title)}: ${count === 0 ? 'none' : `${count}, not listed`}`]
  return [
    '',
    `${out.heading(title)}: ${count}${count > items.length ? `, ${items.length} listed` : ''}`,
    ...out.table(items, [
      { title: 'Order', flexible: true, cell: (item) => item.orderName },
      { title: 'Id', cell: (item) => item.orderId },
      out.moment('Paid', (item) => item.paidAt),
      { title: 'Subtotal', right: true, cell: amountText },
      { title: more, flexible: true, cell },
    ]),
  ]
}

function amountText({ subtotal, currency }: ListedOrder): string {
  if (subtotal === null) return '–'
  return currency === 'PKR' ? displayMoney(subtotal) : `${currency} ${formatMoney(subtotal)}`
}

function documentOf(domain: string, found: OrderComparison) {
  const { neverReported, rejected, otherAmounts } = found
  const missing = neverReported.items.map((item) => ({ ...wireOrder(item), set_aside: item.setAside }))
  const refused = rejected.items.map((item) => {
    return { ...wireOrder(item), rejection_reason: item.reason, sale_id: item.saleId }
  })
  const differing = otherAmounts.items.map((item) => {
    return { ...wireOrder(item), reported_subtotal: formatMoney(item.reported), sale_id: item.saleId }
  })
  return {
    store: domain,
    orders: found.orders,
    not_paid: found.notPaid,
    before_connection: found.beforeConnection,
    accepted: found.accepted,
    never_reported: { count: neverReported.count, items: missing },
    rejected: { count: rejected.count, reasons: rejected.reasons, items: refused },
    other_amounts: { count: otherAmounts.count, items: differing },
  }
}

function wireOrder({ orderId, orderName, paidAt, subtotal, currency }: ListedOrder) {
  return {
    order_id: orderId,
    order_name: orderName,
    paid_at: wireTime(paidAt),
    subtotal: subtotal === null ? null : formatMoney(subtotal),
    currency,
  }
}
