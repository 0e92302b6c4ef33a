import type { Inputs } from '../../index.ts'
import { client, useList, useQuery } from '../client.ts'
import { Filters } from '../parts/form.tsx'
import { Empty, Page } from '../parts/page.tsx'
import { ListTable } from '../parts/table.tsx'
import { Theirs } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { percent, t } from '../text.ts'

const ROWS = 50

/** The public catalogue. */
export function Offers() {
  const { query } = useRoute()
  const filters = Object.fromEntries(query) as NonNullable<Inputs['offers']['list']>
  const list = useList(`offers ${query}`, (cursor) =>
    client.offers.list.query({ ...filters, limit: ROWS, ...cursor }),
  )
  const { data } = useQuery('categories', () => client.offers.categories.query())
  const categories = [...new Set(data?.items.map(({ category }) => category))]
  return (
    <Page title={t('Offers')} lead={t('What stores pay creators for sales.')}>
      <Filters
        fields={[
          { name: 'q', label: t('Search'), type: 'search' },
          {
            name: 'category',
            label: t('Category'),
            type: 'select',
            options: [['', t('All')], ...categories.map((name) => [name, name] as const)],
          },
        ]}
      />
      <ListTable
        label={t('Offers')}
        list={list}
        empty={<Empty title={t('No offers fit.')}>{t('Choose other filters.')}</Empty>}
        columns={[
          { head: t('Offer'), cell: ({ title }) => <Theirs>{title}</Theirs> },
          { head: t('Merchant'), cell: ({ merchant }) => <Theirs>{merchant.display_name}</Theirs> },
          { head: t('Category'), cell: ({ category }) => <Theirs>{category}</Theirs> },
          { head: t('Commission'), end: true, cell: ({ commission_rate }) => percent(commission_rate) },
        ]}
      />
    </Page>
  )
}
