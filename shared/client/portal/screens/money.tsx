import type { Outputs } from '../../index.ts'
import { client, useFigures, useLive, useQuery, useRole } from '../client.ts'
import { Ask } from '../parts/form.tsx'
import { ListPage, useList } from '../parts/list.tsx'
import { ask, LISTS, WAITS } from '../parts/members.tsx'
import { Answered, Card, Copy, Facts, Figures, Outside, Theirs, When } from '../parts/page.tsx'
import { money, period, t, when } from '../text.ts'

type Cycle = Outputs['billing']['listCycles']['items'][number]
type Payout = Outputs['payouts']['list']['items'][number]
type Summary = Extract<Outputs['summaries']['get'], { role: 'creator' }>

/** What the merchant owes, and how to pay it. */
export function Billing() {
  const me = useQuery('me', () => client.users.me.query())
  const list = useList<Cycle>(LISTS.billing_cycles, client.billing.listCycles.query)
  useLive('billing_cycle', ({ billing_cycle }) => {
    list.put(billing_cycle)
    void me.reload()
  })
  const { account } = me.data ?? {}
  const sum = (amount = '0.00') => money(amount)
  const cells = {
    period: ({ period_start, period_end }: Cycle) => period(period_start, period_end),
    payment: (cycle: Cycle) => <Payment cycle={cycle} />,
    invoiced_sales: ({ id }: Cycle) => <a href={`/app/sales?billing_cycle_id=${id}`}>{t('Show')}</a>,
    file: ({ id }: Cycle) => <a href={`/app/exports?billing_cycle_id=${id}`}>{t('Export')}</a>,
  }
  return (
    <ListPage list={list} cells={cells}>
      <Figures
        items={[
          [t('To pay now'), sum(account?.unpaid)],
          [t('The open billing cycle so far'), sum(account?.open_cycle_due)],
          [t('Credit left'), sum(account?.credit_available)],
        ]}
      />
    </ListPage>
  )
}

/** How a closed cycle is paid, or when it was. */
function Payment({ cycle }: { cycle: Cycle }) {
  const { state, payment_url: url, payment_instructions: instructions, processor_invoice_id: invoice } = cycle
  if (state !== 'closed') return <When at={cycle.charged_at} kind="date" />
  if (url) return <Outside href={url} />
  if (instructions === null) return <>{t('It is requested from your billing account.')}</>
  return (
    <>
      <Theirs>{instructions}</Theirs>
      <Copy label={t('Payment reference')} text={invoice ?? ''} />
    </>
  )
}

/** A creator's balance and payouts, or the part of payouts that a merchant paid for. */
export function Payouts() {
  const isCreator = useRole() === 'creator'
  const list = useList<Payout>(LISTS.payouts, client.payouts.list.query)
  useLive('payout', ({ payout }) => list.put(payout))
  const lead = !isCreator && t('What creators got of the billing cycles that you paid.')
  return (
    <ListPage list={list} lead={lead}>
      {isCreator && <Balance />}
      {isCreator && <Destination />}
    </ListPage>
  )
}

function Balance() {
  const query = useQuery('balance', async () => (await client.summaries.get.query()) as Summary)
  useFigures(query.reload)
  return (
    <Answered of={query}>
      {({ next_payout: { waits_for: reason, ...next }, payout_threshold, ...balance }) => {
        const amounts = { threshold: money(payout_threshold), missing: money(next.missing) }
        const tone = reason === 'below_threshold' ? 'quiet' : reason ? 'warn' : 'good'
        return (
          <>
            <Figures
              items={[
                [t('Earned'), money(balance.pending), t('Merchants have not paid for it yet.')],
                [t('Ready'), money(balance.released), t('The next payout run takes it.')],
                [t('On its way'), money(balance.in_transit), t('The bank has not confirmed it yet.')],
                [t('Paid'), money(balance.paid)],
              ]}
            />
            <p class={`notice ${tone}`}>
              {reason
                ? t(WAITS[reason], amounts)
                : t('The next payout run pays {amount}.', { amount: money(next.amount) })}
            </p>
          </>
        )
      }}
    </Answered>
  )
}

type NewDestination = { iban: string; account_title: string; current_password?: string }

function Destination() {
  const me = useQuery('me', () => client.users.me.query())
  const save = ({ current_password, ...payout_destination }: NewDestination) =>
    client.users.updateMe.mutate({ payout_destination, current_password })
  return (
    <Answered of={me}>
      {({ payout_destination: now, upcoming_payout_destination: next }) => {
        const name = now ? 'users.replaceDestination' : 'users.addDestination'
        const later = next && {
          time: when(next.effective_at),
          title: next.account_title,
          last4: next.iban_last4,
        }
        return (
          <Card title={t('Where payouts go')} actions={<Ask {...ask(name, save, {}, me.reload)} />}>
            {now && <Facts of={now} items={['account_title', 'iban_last4']} />}
            {!now && <p>{t('No bank account yet.')}</p>}
            {later && (
              <p class="notice warn">{t('From {time} on: {title}, IBAN ending in {last4}.', later)}</p>
            )}
          </Card>
        )
      }}
    </Answered>
  )
}
