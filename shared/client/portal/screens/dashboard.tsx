import type { Inputs, Outputs } from '../../index.ts'
import { client, session, useFigures, useQuery } from '../client.ts'
import { Filters, field } from '../parts/form.tsx'
import { Answered, Card, Page } from '../parts/page.tsx'
import { Plot } from '../parts/pictures.tsx'
import { Table } from '../parts/table.tsx'
import { Figures, Theirs } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { count, key, money, t } from '../text.ts'

type Series = Outputs['summaries']['series']['items']
type Summary = Outputs['summaries']['get']
type By = Inputs['summaries']['series']['by']

const DAY_MS = 86_400_000
const PERIODS = ['', '7', '90', '365']
const USUAL = '30'
/** What else than days figures are grouped by, and the filter of sales that each stands for. */
const GROUPS = {
  link: [key('Links'), 'affiliate_link_slug'],
  offer: [key('Offers'), 'offer_id'],
  sub_id: [key('Placements'), ''],
} as const

async function load(days: string, groups: readonly By[]) {
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
  const rows = daily?.items ?? []
  const line = (name: string, of: (row: Series[number]) => number) => ({ name, values: rows.map(of) })
  return {
    ...{ summary, grouped, days: rows.map((row) => row.key) },
    clicks: rows.reduce((sum, row) => sum + row.clicks, 0),
    commission: [line(t('Commission'), (row) => Number(row.commission))],
    visits: [line(t('Clicks'), (row) => row.clicks), line(t('Sales'), (row) => row.sales)],
  }
}

function figuresOf(summary: Summary, clicks: number): [name: string, value: string, hint?: string][] {
  const { accepted, rejected, commission } = summary.sales
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
  const isCreator = session.use()?.role === 'creator'
  const groups = ['link', isCreator ? 'sub_id' : 'offer'] as const
  const chosen = useRoute().query.get('days') ?? ''
  const days = (PERIODS.includes(chosen) && chosen) || USUAL
  const query = useQuery(`dashboard ${days}`, () => load(days, groups))
  useFigures(query.reload)
  const options = PERIODS.map((days) => [days, t('{days} days', { days: days || USUAL })] as const)
  const plots = { commission: t('Commission by day, in rupees'), visits: t('Clicks and sales by day') }
  return (
    <Page title={t('Dashboard')}>
      <Filters fields={[field('days?', { options })]} />
      <Answered of={query}>
        {({ summary, clicks, days, grouped, ...lines }) => (
          <>
            <Figures items={figuresOf(summary, clicks)} />
            {(['commission', 'visits'] as const).map((name) => (
              <Card key={name} title={plots[name]}>
                <Plot label={plots[name]} days={days} lines={lines[name]} />
              </Card>
            ))}
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
  const [title, filter] = GROUPS[by]
  const cell = ({ key, label }: Series[number]) => (
    <Theirs to={filter && `/sales?${filter}=${key}`}>{label || '–'}</Theirs>
  )
  if (rows.length === 0) return null
  return (
    <Table
      label={t(title)}
      rows={rows}
      rowKey={(row) => row.key}
      columns={[{ head: t(title), cell }, 'clicks', 'sales', 'commission']}
    />
  )
}
