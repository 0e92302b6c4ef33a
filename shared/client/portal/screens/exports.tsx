import { useState } from 'preact/hooks'
import type { Inputs } from '../../index.ts'
import { client, download, Refused, session, usePoll, useQuery } from '../client.ts'
import { Ask } from '../parts/ask.tsx'
import { Form, field, optionsOf } from '../parts/form.tsx'
import { Card, Failed, Page } from '../parts/page.tsx'
import { Status } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { kept } from '../store.ts'
import { count, t } from '../text.ts'

type Request = Omit<Inputs['jobs']['startExport'], 'format'> & { format: string }

/** The service lists no jobs, so the browser keeps the ids of the last ones. */
const KEPT = 'portal.exports'
const MOST_KEPT = 10
const RESOURCES = ['sales', 'pending_orders', 'clicks', 'applications']

/** The account's rows as files; with `billing_cycle_id` in the address, what an invoice is made of. */
export function Exports() {
  const own = session.use()?.role === 'merchant' ? 'billing_cycles' : 'payouts'
  const cycle = useRoute().query.get('billing_cycle_id')
  const [ids, setIds] = useState(() => kept.get(KEPT)?.split(' ') ?? [])
  const start = async ({ format, ...given }: Request) => {
    const file = { format: format === 'ndjson' ? format : 'csv', excel: format === 'excel' } as const
    const input = { ...given, ...file, billing_cycle_id: cycle ?? undefined }
    const latest = [(await client.jobs.startExport.mutate(input)).id, ...ids].slice(0, MOST_KEPT)
    kept.set(KEPT, latest.join(' '))
    setIds(latest)
  }
  const fields = [
    field('resource', { options: optionsOf(cycle ? ['sales'] : [...RESOURCES, own]) }),
    field('format', { options: optionsOf(['excel', 'csv', 'ndjson']) }),
    ...['from?', 'to?'],
  ]
  return (
    <Page title={t('Exports')} lead={cycle ? t('The sales of one billing cycle.') : t('Your rows as files.')}>
      <Card>
        <Form fields={fields} submit={t('Start the export')} onSubmit={start} />
      </Card>
      {ids.map((id) => (
        <Job key={id} id={id} />
      ))}
    </Page>
  )
}

/** Shows nothing for the job of another account in this browser. */
function Job({ id }: { id: string }) {
  const { data: job, reload } = useQuery(`job ${id}`, () => client.jobs.get.query({ id }))
  usePoll(reload, job?.finished_at === null)
  if (!job) return null
  return (
    <Card title={t('{count} rows', { count: count(job.rows) })} actions={<Status value={job.state} />}>
      {job.finished_at === null && <progress value={job.progress} aria-label={t('Progress')} />}
      {job.error && <Failed error={new Refused({ detail: job.error, code: 'internal' })} />}
      {job.download_url && (
        <Ask class="main" label={t('Download')} onSubmit={() => download(`/jobs/${id}/file`)} />
      )}
    </Card>
  )
}
