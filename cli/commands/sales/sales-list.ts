import type { Command } from 'commander'
import type { SaleWithSlug } from '../../../server/sales/sales.service.ts'
import { CURRENCY } from '../../../shared/money.ts'
import { exampleText, groupOf, oneOf } from '../../command.ts'
import { type CommandContext, READS, withApp } from '../../context.ts'
import { wrongUsage } from '../../failures.ts'
import { addPageOptions, type PageOptions, readPage } from '../../pages.ts'
import { nameOf, type Person, peopleOf } from '../../people.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../../terminal/output.ts'

interface ListOptions extends PageOptions {
  status?: SaleWithSlug['acceptance_status']
  merchant?: string
  creator?: string
  offer?: string
  from?: string
  to?: string
}

export function addSaleListCommand(program: Command): void {
  addPageOptions(
    groupOf(program, 'sales')
      .command('list')
      .description('the newest sales, accepted and rejected')
      .option('--status <status>', 'accepted or rejected', oneOf(['accepted', 'rejected']))
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option('--offer <id>', 'of one offer')
      .option('--from <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE; inclusive')
      .option('--to <time>', 'the same; exclusive'),
  )
    .addHelpText(
      'after',
      exampleText(
        'sales list --status rejected --from 2026-11-20',
        'sales list --creator sana@example.com --json',
      ),
    )
    .action((options: ListOptions, command: Command) => list(options, command))
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { listSales } = await import('../../../server/sales/sales.service.ts')
      const { shopDomainsOf } = await import('../../../server/stores/stores.service.ts')
      const scope = await scopeOf(context, options)
      const range = await rangeOf(context, options)
      const { items: sales, next_cursor } = await readPage(options, (request) =>
        listSales(app.platform, scope, { acceptanceStatus: options.status ?? null, ...range, ...request }),
      )
      const person = await peopleOf(
        app,
        sales.flatMap((sale) => [sale.merchant_id, ...(sale.creator_id === null ? [] : [sale.creator_id])]),
      )
      const domains = await shopDomainsOf(app.database.reader, [
        ...new Set(sales.map((sale) => sale.store_id)),
      ])
      const { attributedBy } = await import('../../../server/sales/sale-wire.ts')
      const shop = (sale: SaleWithSlug) => domains.get(sale.store_id) ?? null
      const items = sales.map((sale) => wireSale(sale, shop(sale), person, attributedBy))
      out.showPage({ items, next_cursor }, () => saleTable(out, sales, shop, person))
    },
    READS,
  )
}

async function scopeOf(
  { app }: CommandContext & { app: import('../../../server/app.ts').App },
  options: ListOptions,
) {
  const { findUser } = await import('../../../server/users/users.service.ts')
  if (options.merchant !== undefined && options.creator !== undefined) {
    throw wrongUsage('Name a merchant or a creator, not both.')
  }
  if (options.merchant !== undefined)
    return { merchantId: (await findUser(app.platform, options.merchant)).id }
  if (options.creator !== undefined) return { creatorId: (await findUser(app.platform, options.creator)).id }
  return 'all' as const
}

async function rangeOf({ config }: CommandContext, options: ListOptions) {
  const { readId, readMoment } = await import('../../arguments.ts')
  const moment = (text: string | undefined) =>
    text === undefined ? null : readMoment(text, config.BILLING_TIMEZONE)
  const [from, to] = [await moment(options.from), await moment(options.to)]
  if (from !== null && to !== null && from >= to) throw wrongUsage('--from must be before --to.')
  return { from, to, offerId: options.offer === undefined ? null : readId('offer', options.offer) }
}

function saleTable(
  out: Output,
  sales: readonly SaleWithSlug[],
  shop: (sale: SaleWithSlug) => string | null,
  person: (id: string) => Person,
): string[] {
  return out.table(
    [
      { title: 'Recorded' },
      { title: 'Order' },
      { title: 'Store', flexible: true, optional: true },
      { title: 'Decision', flexible: true },
      { title: 'Net', right: true },
      { title: 'Commission', right: true },
      { title: 'Fee', right: true, optional: true },
      { title: 'Creator', flexible: true },
    ],
    sales.map((sale) => [
      out.shortTime(sale.created_at),
      sale.order_name ?? sale.order_id,
      shop(sale) ?? sale.store_id,
      sale.rejection_reason ?? sale.acceptance_status,
      displayMoney(sale.net_amount),
      displayMoney(sale.commission),
      displayMoney(sale.platform_fee),
      sale.creator_id === null ? '–' : nameOf(person(sale.creator_id)),
    ]),
  )
}

function wireSale(
  sale: SaleWithSlug,
  shopDomain: string | null,
  person: (id: string) => Person,
  attributedBy: (sale: SaleWithSlug) => 'coupon' | 'click' | null,
) {
  return {
    id: sale.id,
    acceptance_status: sale.acceptance_status,
    rejection_reason: sale.rejection_reason,
    attributed_by: attributedBy(sale),
    store: { id: sale.store_id, shop_domain: shopDomain },
    merchant: person(sale.merchant_id),
    creator: sale.creator_id === null ? null : person(sale.creator_id),
    offer_id: sale.offer_id,
    affiliate_link_slug: sale.slug,
    order_id: sale.order_id,
    order_name: sale.order_name,
    net_amount: formatMoney(sale.net_amount),
    commission_rate: sale.commission_rate === null ? null : sale.commission_rate / 100,
    commission: formatMoney(sale.commission),
    platform_fee: formatMoney(sale.platform_fee),
    currency: CURRENCY,
    billing_cycle_id: sale.billing_cycle_id,
    ordered_at: wireTime(sale.ordered_at),
    created_at: wireTime(sale.created_at),
    decided_at: wireTime(sale.decided_at ?? sale.created_at),
  }
}
