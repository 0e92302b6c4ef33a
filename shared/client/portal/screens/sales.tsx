import type { Inputs } from '../../index.ts'
import { client, useList, useLive } from '../client.ts'
import { Filters } from '../parts/form.tsx'
import { Empty, Page } from '../parts/page.tsx'
import { ListTable } from '../parts/table.tsx'
import { Money, Status, Theirs, When } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { t } from '../text.ts'

const ROWS = 50

/** The account's sales; new ones appear by themselves. */
export function Sales() {
  const { query } = useRoute()
  const filters = Object.fromEntries(query) as NonNullable<Inputs['sales']['list']>
  const list = useList(`sales ${query}`, (cursor) =>
    client.sales.list.query({ ...filters, limit: ROWS, ...cursor }),
  )
  useLive('sale', ({ sale }) => {
    const { acceptance_status } = filters
    if (!acceptance_status || acceptance_status === sale.acceptance_status) list.put(sale)
  })
  return (
    <Page title={t('Sales')}>
      <Filters
        fields={[
          {
            name: 'acceptance_status',
            label: t('Status'),
            type: 'select',
            options: [
              ['', t('All')],
              ['accepted', t('Accepted')],
              ['rejected', t('Rejected')],
            ],
          },
        ]}
      />
      <ListTable
        label={t('Sales')}
        list={list}
        empty={
          <Empty title={t('No sales yet.')}>{t('They appear here as soon as a store reports them.')}</Empty>
        }
        columns={[
          { head: t('Order'), cell: ({ order_name, order_id }) => <Theirs>{order_name ?? order_id}</Theirs> },
          { head: t('Offer'), cell: ({ offer }) => <Theirs>{offer?.title ?? '–'}</Theirs> },
          { head: t('Status'), cell: ({ acceptance_status }) => <Status value={acceptance_status} /> },
          { head: t('Commission'), end: true, cell: ({ commission }) => <Money amount={commission} /> },
          { head: t('Reported'), cell: ({ created_at }) => <When at={created_at} /> },
        ]}
      />
    </Page>
  )
}
