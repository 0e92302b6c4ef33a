import type { Outputs } from '../../index.ts'
import { client, session, useFigures, useLive } from '../client.ts'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Status, Theirs } from '../parts/values.tsx'
import { t } from '../text.ts'
import { REJECTION_REASONS } from '../words.ts'

type Sale = Outputs['sales']['list']['items'][number]
type Pending = Outputs['pendingOrders']['list']['items'][number]

/** The account's sales; new ones appear by themselves. */
export function Sales() {
  const isMerchant = session.use()?.role === 'merchant'
  const filters = [
    choice('acceptance_status', ['accepted', 'rejected']),
    choice('rejection_reason', REJECTION_REASONS),
    ...['order_name?', 'from?', 'to?'],
    ...['offer_id?', 'creator_id?', 'store_id?', 'affiliate_link_slug?', 'billing_cycle_id?'],
  ]
  const list = useFiltered<Sale>('sales', filters, client.sales.list.query)
  useLive('sale', ({ sale }) => list.put(sale))
  const order = ({ id, order_name, order_id }: Sale) => (
    <Theirs to={`/sales/${id}`}>{order_name ?? order_id}</Theirs>
  )
  const status = ({ acceptance_status, rejection_reason }: Sale) => (
    <Status value={rejection_reason ?? acceptance_status} />
  )
  return (
    <ListPage
      title={t('Sales')}
      list={list}
      empty={[t('No sales yet.'), t('They appear here as soon as a store reports them.')]}
      columns={[
        { head: t('Order'), cell: order },
        'offer',
        ...(isMerchant ? (['creator', 'store'] as const) : (['sub_id'] as const)),
        { head: t('Status'), cell: status },
        'net_amount',
        'commission',
        'created_at',
      ]}
    />
  )
}

/** Orders that are not paid yet, such as cash on delivery. */
export function PendingOrders() {
  const isMerchant = session.use()?.role === 'merchant'
  const states = choice('state', ['pending', 'became_sale', 'cancelled', 'expired'])
  const filters = [states, 'from?', 'to?', 'offer_id?']
  const list = useFiltered<Pending>('pending', filters, client.pendingOrders.list.query)
  useFigures(list.reload)
  const order = ({ order_name, sale_id }: Pending) => (
    <Theirs to={sale_id ? `/sales/${sale_id}` : ''}>{order_name}</Theirs>
  )
  return (
    <ListPage
      title={t('Pending orders')}
      lead={t('Cash on delivery and the like: each becomes a sale when the store reports it as paid.')}
      list={list}
      empty={[t('No order waits.'), t('Cash on delivery appears here when it is ordered.')]}
      columns={[
        { head: t('Order'), cell: order },
        'offer',
        ...(isMerchant ? (['creator', 'store'] as const) : []),
        'state',
        'expected_commission',
        'placed_at',
      ]}
    />
  )
}
