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
  const { never_reported, rejected, other_amounts } = found
  const paid = found.orders - found.not_paid - found.before_connection
  const reasons = Object.entries(rejected.reasons)
    .sort(([, one], [, other]) => other - one)
    .map(([reason, orders]) => `${reason} ${orders}`)
    .join(', ')
  return [
    ...out.pairs([
      ['Orders', `${found.orders} in the file, ${paid} of them paid since the store was connected`],
      ['Not paid', `${found.not_paid} (or canceled, or refunded in full)`],
      ['Earlier', `${found.before_connection} paid before the store was connected`],
      ['Accepted', String(found.accepted)],
      ['Rejected', `${rejected.count}${reasons === '' ? '' : `: ${reasons}`}`],
    ]),
    ...section(out, 'Never reported', never_reported, 'Why', ({ set_aside }) =>
      set_aside === null ? 'no event arrived' : `set aside: ${set_aside}`,
    ),
    ...section(out, 'Reported and rejected', rejected, 'Why', (item) => item.rejection_reason),
    ...section(out, 'Reported with another subtotal', other_amounts, 'Reported', (item) =>
      displayMoney(item.reported_subtotal),
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
      { title: 'Order', flexible: true, cell: (item) => item.order_name },
      { title: 'Id', cell: (item) => item.order_id },
      { title: 'Subtotal', right: true, cell: amountText },
      { title: more, flexible: true, cell },
      out.moment('Paid', (item) => item.paid_at),
    ]),
  ]
}

function amountText({ subtotal, currency }: ListedOrder): string {
  if (subtotal === null) return '–'
  return currency === 'PKR' ? displayMoney(subtotal) : `${currency} ${formatMoney(subtotal)}`
}

function documentOf(store: string, found: OrderComparison) {
  const { never_reported, rejected, other_amounts } = found
  return {
    store,
    ...found,
    never_reported: { ...never_reported, items: never_reported.items.map(wireOrder) },
    rejected: { ...rejected, items: rejected.items.map(wireOrder) },
    other_amounts: {
      ...other_amounts,
      items: other_amounts.items.map((item) => ({
        ...wireOrder(item),
        reported_subtotal: formatMoney(item.reported_subtotal),
      })),
    },
  }
}

function wireOrder<Item extends ListedOrder>(item: Item) {
  const subtotal = item.subtotal === null ? null : formatMoney(item.subtotal)
  return { ...item, paid_at: wireTime(item.paid_at), subtotal }
}
