import type { Outputs } from '../../index.ts'
import { client, useLive, useQuery } from '../client.ts'
import { Ask } from '../parts/ask.tsx'
import { field } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Copy, Facts, Figures, Outside, Theirs, When } from '../parts/values.tsx'
import { Link } from '../router.tsx'
import { money, period, t } from '../text.ts'

type Sale = Outputs['sales']['get']
type Cycle = Outputs['billing']['listCycles']['items'][number]

const AMOUNTS = ['state', 'commission_total', 'fee_total', 'credit_total', 'amount_due'] as const

/** What the merchant owes, and how to pay it. */
export function Billing() {
  const me = useQuery('me', () => client.users.me.query())
  const states = choice('state', ['open', 'closed', 'charged'])
  const list = useFiltered<Cycle>('cycles', [states], client.billing.listCycles.query)
  useLive('billing_cycle', ({ billing_cycle }) => {
    list.put(billing_cycle)
    void me.reload()
  })
  const { account } = me.data ?? {}
  const sum = (amount = '0.00') => money(amount)
  const file = ({ id }: Cycle) => <Link to={`/exports?billing_cycle_id=${id}`}>{t('Export')}</Link>
  return (
    <ListPage
      title={t('Billing')}
      lead={t('Commissions and fees are collected in billing cycles; each is invoiced when it closes.')}
      list={list}
      empty={[t('Nothing is billed yet.'), t('The first accepted sale opens a billing cycle.')]}
      columns={[
        { head: t('Period'), cell: ({ period_start, period_end }) => period(period_start, period_end) },
        ...AMOUNTS,
        { head: t('Payment'), cell: (cycle) => <Payment cycle={cycle} /> },
        { head: t('Sales'), cell: ({ id }) => <Link to={`/sales?billing_cycle_id=${id}`}>{t('Show')}</Link> },
        { head: t('File'), cell: file },
      ]}
    >
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
  if (state !== 'closed') return <When at={cycle.charged_at} style="date" />
  if (url) return <Outside href={url} />
  if (instructions === null) return <>{t('It is requested from your billing account.')}</>
  return (
    <>
      <Theirs>{instructions}</Theirs>
      <Copy label={t('Payment reference')} text={invoice ?? ''} />
    </>
  )
}

/** For the receipt of a merchant's sale: asks the operator for money back, and shows what came of it. */
export function CreditRequest({ sale, changed }: { sale: Sale; changed: () => Promise<void> }) {
  const { id, commission, credit_request: request } = sale
  const send = (input: { amount: string; reason: string }) =>
    client.sales.requestCredit.mutate({ ...input, id }).then(changed)
  const fields = [field('amount', { value: commission }), 'reason']
  const text = t('An operator grants it on a coming invoice, or declines it.')
  return (
    <>
      {request && <Facts of={request} items={['amount', 'status', 'granted_amount', 'reason']} />}
      {request?.status !== 'pending' && (
        <Ask label={t('Request a credit')} text={text} fields={fields} onSubmit={send} />
      )}
    </>
  )
}
