import type { ComponentChildren } from 'preact'
import type { Outputs } from '../../index.ts'
import { client, session, useFigures, useQuery } from '../client.ts'
import { Answered, Card, Page } from '../parts/page.tsx'
import { Steps } from '../parts/steps.tsx'
import { Table } from '../parts/table.tsx'
import { Facts, Status, Theirs, When } from '../parts/values.tsx'
import { money, t } from '../text.ts'
import { CHECKS, word } from '../words.ts'
import { CreditRequest } from './billing.tsx'

type Sale = Outputs['sales']['get']
type Check = Sale['receipt']['checks'][number]
/** Something that has happened, or, without a time, is still to come. */
type Moment = [text: string, at: string | null, note?: string | false | null | undefined]

const RARE = ['discount_spread', 'amount_refunded', 'lines_left_out'] as const
const RESULT = ['net_amount', 'commission_rate', 'commission']

/** How a sale came about and what became of it. */
export function Receipt({ params: { id = '' } }: { params: Record<string, string> }) {
  const query = useQuery(`sale ${id}`, () => client.sales.get.query({ id }))
  useFigures(query.reload)
  const isMerchant = session.use()?.role === 'merchant'
  const fees = isMerchant ? (['platform_fee_rate', 'platform_fee'] as const) : []
  const order = query.data?.order_name ?? query.data?.order_id ?? ''
  return (
    <Page title={t('Order {order}', { order })} lead={<Theirs>{query.data?.store.shop_domain}</Theirs>}>
      <Answered of={query}>
        {({ receipt, ...sale }) => (
          <>
            <Card
              title={t('What happened')}
              actions={<Status value={sale.rejection_reason ?? sale.acceptance_status} />}
            >
              <Story moments={[...originOf({ receipt, ...sale }), ...outcomeOf(sale)]} />
            </Card>
            <Card title={t('What commission is taken of')}>
              {receipt.lines.length > 0 && (
                <Table
                  label={t('What commission is taken of')}
                  rows={receipt.lines}
                  rowKey={(line) => String(receipt.lines.indexOf(line))}
                  columns={['title', 'quantity', 'gross', 'discount', 'tax', 'net', 'why_not']}
                />
              )}
              {receipt.unclear && (
                <p>{t('The order does not tell all of its amounts. An operator looks at it.')}</p>
              )}
              <Facts of={receipt} items={[...RARE.filter((name) => receipt[name]), ...RESULT, ...fees]} />
            </Card>
            <Card title={t('Checks')}>
              <Table label={t('Checks')} rows={receipt.checks} rowKey={nameOf} columns={checks()} />
            </Card>
            {isMerchant && sale.acceptance_status === 'accepted' && (
              <Card title={t('Credit')}>
                <CreditRequest sale={{ receipt, ...sale }} changed={query.reload} />
              </Card>
            )}
          </>
        )}
      </Answered>
    </Page>
  )
}

/** From the locked terms to the decision, in the order of their times. */
function originOf({ receipt, ...sale }: Sale): Moment[] {
  const { commission_rate, offer_commission_rate, rate_source, attribution_window_days, product_ids } =
    receipt
  const names = { creator: sale.creator?.display_name ?? '', offer: sale.offer?.title ?? '' }
  const terms = {
    ...{ rate: commission_rate ?? '', offer: offer_commission_rate ?? '' },
    ...{ days: attribution_window_days ?? '', products: product_ids?.length ?? t('all') },
  }
  const locked =
    rate_source === 'individual'
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
type Decision = Pick<Sale, 'decided_at' | 'acceptance_status' | 'rejection_reason'>

/** From the billing cycle to the payout. */
function outcomeOf({ outcome: { billing_cycle: cycle, payouts } }: Pick<Sale, 'outcome'>): Moment[] {
  if (!cycle) return []
  const share = t('{amount} for the creator in the whole cycle.', { amount: money(cycle.creator_share) })
  const due = cycle.amount_due && money(cycle.amount_due)
  const sent = payouts.map(({ state, share, settled_at, failure_reason }): Moment => {
    const text =
      state === 'failed' ? t('A payout failed and went back into the balance.') : t('The payout arrives.')
    return [text, settled_at, failure_reason ?? money(share)]
  })
  const isWaiting = payouts.every(({ state }) => state === 'failed')
  return [
    [t('The billing cycle closes and is invoiced.'), cycle.closed_at, due],
    [t('The merchant pays the invoice.'), cycle.charged_at, share],
    ...sent,
    ...(isWaiting ? [[t('A payout run takes it once the balance is enough.'), null] as Moment] : []),
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

const nameOf = ({ name }: Check) => name

/** Each check, its verdict, and what it looked at. */
const checks = () => [
  { head: t('Check'), cell: ({ name }: Check) => t(CHECKS[name] ?? name) },
  'verdict' as const,
  {
    head: t('Saw'),
    cell: ({ saw }: Check) => (
      <Facts of={saw} items={Object.keys(saw).filter((name) => isTelling(name, saw))} />
    ),
  },
]

// A yes or no says the same as the check's sentence, and people know no milliseconds.
const isTelling = (name: string, saw: Record<string, unknown>) =>
  typeof saw[name] !== 'boolean' && !name.endsWith('_ms')
