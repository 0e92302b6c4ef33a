import type { ComponentChildren } from 'preact'
import type { Inputs, Outputs } from '../../index.ts'
import { client, useFigures, useLive, useQuery, useRole } from '../client.ts'
import { Ask, Filters, field } from '../parts/form.tsx'
import { ListPage, useList } from '../parts/list.tsx'
import { ask, CHECKS, LISTS } from '../parts/members.tsx'
import { Answered, Card, Facts, Figures, Page, Status, Table, Theirs, When } from '../parts/page.tsx'
import { Plot, Steps } from '../parts/pictures.tsx'
import { route } from '../state.ts'
import { count, fieldOf, money, t, translated, word } from '../text.ts'

type Series = Outputs['summaries']['series']['items']
type Summary = Outputs['summaries']['get']
type By = Inputs['summaries']['series']['by']

const DAY_MS = 86_400_000
const USUAL = '30'
/** What else than days figures are grouped by, and the filter of sales that each stands for. */
const GROUPS = { link: 'affiliate_link_slug', offer: 'offer_id', sub_id: '' }
/** What the plots draw. */
const EARNED = ['commission'] as const
const VISITS = ['clicks', 'sales'] as const

async function loadFigures(days: string, groups: readonly By[]) {
  // Beside the figures, so that the plot does not wait for its script.
  void import('uplot')
  // By the service's clock, not this computer's; without a period it takes the usual days.
  const to = days === USUAL ? null : (await client.summaries.get.query()).sales.to
  const period = to ? { from: new Date(Date.parse(to) - Number(days) * DAY_MS).toISOString(), to } : {}
  const series = (by: By) => client.summaries.series.query({ by, ...period })
  const [summary, daily, ...grouped] = await Promise.all([
    client.summaries.get.query(period),
    ...(['day', ...groups] as const).map(series),
  ])
  return { summary, daily: daily?.items ?? [], grouped }
}

function figuresOf(summary: Summary, daily: Series): [name: string, value: string, hint?: string][] {
  const { accepted, rejected, commission } = summary.sales
  const clicks = daily.reduce((sum, row) => sum + row.clicks, 0)
  return [
    [t('Clicks'), count(clicks)],
    [t('Sales'), count(accepted), t('{rejected} rejected', { rejected })],
    [t('Commission'), money(commission)],
    [t('Pending orders'), count(summary.pending_orders), money(summary.expected_commission)],
    summary.role === 'creator'
      ? [t('Next payout'), money(summary.next_payout.amount)]
      : [t('To pay now'), money(summary.receivable)],
  ]
}

/** How the account stands: its visits, orders and sales by day, link and placement. */
export function Dashboard() {
  const groups = ['link', useRole() === 'creator' ? 'sub_id' : 'offer'] as const
  const chosen = route.use().query.get('days') ?? ''
  const days = fieldOf('days').options?.includes(chosen) ? chosen : USUAL
  const query = useQuery(`dashboard ${days}`, () => loadFigures(days, groups))
  useFigures(query.reload)
  return (
    <Page title={t('Dashboard')}>
      <Filters fields={[field('days')]} />
      <Answered of={query}>
        {({ summary, daily, grouped }) => (
          <>
            <Figures items={figuresOf(summary, daily)} />
            <Plot title={t('Commission by day, in rupees')} rows={daily} lines={EARNED} />
            <Plot title={t('Clicks and sales by day')} rows={daily} lines={VISITS} />
            {groups.map((name, index) => (
              <Group key={name} by={name} rows={grouped[index]?.items ?? []} />
            ))}
          </>
        )}
      </Answered>
    </Page>
  )
}

function Group({ by, rows }: { by: keyof typeof GROUPS; rows: Series }) {
  const cell = ({ key, label }: Series[number]) => (
    <Theirs href={GROUPS[by] && `/app/sales?${GROUPS[by]}=${key}`}>{label || '–'}</Theirs>
  )
  if (rows.length === 0) return null
  const columns = [by, 'clicks', 'sales', 'commission']
  const { label } = fieldOf(by)
  return <Table label={label} rows={rows} columns={columns} cells={{ [by]: cell }} />
}

type Listed = Outputs['sales']['list']['items'][number]
type Pending = Outputs['pendingOrders']['list']['items'][number]
type Sale = Outputs['sales']['get']
type Check = Sale['receipt']['checks'][number]

/** The account's sales; new ones appear by themselves. */
export function Sales() {
  const list = useList<Listed>(LISTS.sales, client.sales.list.query)
  useLive('sale', ({ sale }) => list.put(sale))
  const cells = {
    order_name: ({ id, order_name, order_id }: Listed) => (
      <Theirs href={`/app/sales/${id}`}>{order_name ?? order_id}</Theirs>
    ),
    acceptance_status: ({ acceptance_status, rejection_reason }: Listed) => (
      <Status value={rejection_reason ?? acceptance_status} />
    ),
  }
  return <ListPage list={list} cells={cells} />
}

/** Orders that are not paid yet, such as cash on delivery. */
export function PendingOrders() {
  const list = useList<Pending>(LISTS.pending_orders, client.pendingOrders.list.query)
  useFigures(list.reload)
  const order_name = ({ order_name, sale_id }: Pending) => (
    <Theirs href={sale_id ? `/app/sales/${sale_id}` : ''}>{order_name}</Theirs>
  )
  return <ListPage list={list} cells={{ order_name }} />
}

const RARE = ['discount_spread', 'amount_refunded', 'lines_left_out'] as const
const RESULT = ['net_amount', 'commission_rate', 'commission']
const FEES = ['platform_fee_rate', 'platform_fee']
const LINE = ['title', 'quantity', 'gross', 'discount', 'tax', 'net', 'why_not']

/** How a sale came about and what became of it. */
export function Receipt({ params: { id = '' } }: { params: Record<string, string> }) {
  const query = useQuery(`sale ${id}`, () => client.sales.get.query({ id }))
  useFigures(query.reload)
  const isMerchant = useRole() === 'merchant'
  const order = query.data?.order_name ?? query.data?.order_id ?? ''
  return (
    <Page title={t('Order {order}', { order })} lead={<Theirs>{query.data?.store.shop_domain}</Theirs>}>
      <Answered of={query}>
        {(sale) => (
          <>
            <Card
              title={t('What happened')}
              actions={<Status value={sale.rejection_reason ?? sale.acceptance_status} />}
            >
              <Story moments={[...originOf(sale), ...outcomeOf(sale.outcome)]} />
            </Card>
            <Basis receipt={sale.receipt} more={isMerchant ? FEES : []} />
            <Checks checks={sale.receipt.checks} />
            {isMerchant && sale.acceptance_status === 'accepted' && (
              <Credit sale={sale} changed={query.reload} />
            )}
          </>
        )}
      </Answered>
    </Page>
  )
}

function Basis({ receipt, more }: { receipt: Sale['receipt']; more: string[] }) {
  const title = t('What commission is taken of')
  return (
    <Card title={title}>
      {receipt.lines.length > 0 && <Table label={title} rows={receipt.lines} columns={LINE} />}
      {receipt.unclear && <p>{t('The order does not tell all of its amounts. An operator looks at it.')}</p>}
      <Facts of={receipt} items={[...RARE.filter((name) => receipt[name]), ...RESULT, ...more]} />
    </Card>
  )
}

/** Each check, its verdict, and what it looked at. */
function Checks({ checks }: { checks: Check[] }) {
  const columns = ['check', 'verdict', 'saw']
  // A yes or no says the same as the check's sentence, and people know no milliseconds.
  const isTelling = ([name, seen]: [string, unknown]) => typeof seen !== 'boolean' && !name.endsWith('_ms')
  const cells = {
    check: ({ name }: Check) => t(CHECKS[name] ?? name),
    saw: ({ saw }: Check) => (
      <Facts of={saw} items={Object.entries(saw).flatMap((seen) => (isTelling(seen) ? [seen[0]] : []))} />
    ),
  }
  return (
    <Card title={t('Checks')}>
      <Table label={t('Checks')} rows={checks} columns={columns} cells={cells} />
    </Card>
  )
}

/** Asks the operator for money back, and shows the request and its outcome. */
function Credit({ sale, changed }: { sale: Sale; changed: () => Promise<void> }) {
  const { id, commission, credit_request: request } = sale
  const send = ask('sales.requestCredit', client.sales.requestCredit.mutate, { id }, changed)
  return (
    <Card title={t('Credit')}>
      {request && <Facts of={request} items={['amount', 'status', 'granted_amount', 'reason']} />}
      {request?.status !== 'pending' && <Ask {...send} values={{ amount: commission }} />}
    </Card>
  )
}

/** Something that has happened, or, without a time, is still to come. */
type Moment = [text: string, at: string | null, note?: string | false | null | undefined]
type Decision = Pick<Sale, 'decided_at' | 'acceptance_status' | 'rejection_reason'>

/** From the locked terms to the decision, in the order of their times. */
function originOf({ receipt, ...sale }: Sale): Moment[] {
  const { commission_rate, offer_commission_rate, attribution_window_days, product_ids } = receipt
  const names = { creator: sale.creator?.display_name ?? '', offer: sale.offer?.title ?? '' }
  const terms = {
    rate: commission_rate ?? '',
    offer: offer_commission_rate ?? '',
    days: attribution_window_days ?? '',
    products: product_ids?.length ?? t('all'),
  }
  const locked =
    receipt.rate_source === 'individual'
      ? t('Locked: {rate}% for this creator (the offer: {offer}%), {days} days, products: {products}.', terms)
      : t('Locked: {rate}%, for {days} days after a click, products: {products}.', terms)
  const decided = ({ decided_at, acceptance_status, rejection_reason: reason }: Decision): Moment =>
    acceptance_status === 'accepted'
      ? [t('The store reported the order as paid: accepted.'), decided_at]
      : [t('The store reported the order: rejected.'), decided_at, reason && word(reason)]
  const moments: Moment[] = [
    [t('{creator} was approved for “{offer}”.', names), receipt.terms_locked_at, locked],
    ...receipt.coupons.map(
      ({ code, starts_at }): Moment => [t('The link got the coupon code {code}.', { code }), starts_at],
    ),
    [t('A visitor followed the link.'), receipt.clicked_at, sale.sub_id],
    [t('The order was placed.'), sale.ordered_at, word(receipt.tracked_by)],
    ...[...sale.former_decisions, sale].map(decided),
  ]
  // Stores write whole seconds: within one, an order does not come before its click.
  const second = ([, at]: Moment) => Math.floor(Date.parse(at ?? '') / 1000)
  return moments.filter(([, at]) => at !== null).sort((one, other) => second(one) - second(other))
}

/** From the billing cycle to the payout. */
function outcomeOf({ billing_cycle: cycle, payouts }: Sale['outcome']): Moment[] {
  if (!cycle) return []
  const share = t('{amount} for the creator in the whole cycle.', { amount: money(cycle.creator_share) })
  const due = cycle.amount_due && money(cycle.amount_due)
  const arrives = t('The payout arrives.')
  const failed = t('A payout failed and went back into the balance.')
  const sent = payouts.map(
    ({ state, share, settled_at, failure_reason: reason }): Moment => [
      state === 'failed' ? failed : arrives,
      settled_at,
      reason ? translated(reason) : money(share),
    ],
  )
  const isWaiting = payouts.every(({ state }) => state === 'failed')
  const waits: Moment = [t('A payout run takes it once the balance is enough.'), null]
  return [
    [t('The billing cycle closes and is invoiced.'), cycle.closed_at, due],
    [t('The merchant pays the invoice.'), cycle.charged_at, share],
    ...sent,
    ...(isWaiting ? [waits] : []),
  ]
}

function Story({ moments }: { moments: Moment[] }) {
  const current = moments.findIndex(([, at]) => at === null)
  const steps = moments.map(([text, at, note]): [string, ...ComponentChildren[]] => [
    text,
    <span class="quiet">{at ? <When at={at} /> : t('Not yet')}</span>,
    note && <bdi class="quiet">{note}</bdi>,
  ])
  return <Steps all steps={steps} at={current < 0 ? moments.length : current} />
}
