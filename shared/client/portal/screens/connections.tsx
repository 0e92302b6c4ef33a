import { useState } from 'preact/hooks'
import { CREATOR_EVENTS, type Inputs, MERCHANT_EVENTS, type Outputs } from '../../index.ts'
import { client, download, refusal, usePoll, useRole } from '../client.ts'
import { Ask, Form, field } from '../parts/form.tsx'
import { ListPage, useList } from '../parts/list.tsx'
import { ADVICE, Asks, ask, LISTS, Revealed, reveal } from '../parts/members.tsx'
import { Card, Copy, Facts, Failed, LinkButton, Page, Said, Status, When } from '../parts/page.tsx'
import { Steps } from '../parts/pictures.tsx'
import { navigate, route } from '../state.ts'
import { count, fieldOf, t, when, word } from '../text.ts'

type Store = Outputs['stores']['get']
type Endpoint = Outputs['webhooks']['get']
type Delivery = Outputs['webhooks']['retry']

const { jobs, stores, webhooks } = client

/** The merchant's stores, each with what arrives from it. */
export function Stores() {
  const list = useList<Store>(LISTS.stores, stores.list.query)
  usePoll(list.reload)
  const connect = <LinkButton href="/app/stores/new">{t('Connect a store')}</LinkButton>
  const card = (store: Store) => <StoreCard store={store} changed={list.reload} />
  return <ListPage list={list} actions={connect} card={card} />
}

export function ConnectStore() {
  const guide = <a href="/docs/guides/connect-shopify">{t('The guide with pictures')}</a>
  return (
    <Page title={t('Connect a store')} lead={guide}>
      <Card>
        <Connection />
      </Card>
    </Page>
  )
}

/** The way from nothing to the first signed order. */
function Connection({ store }: { store?: Store }) {
  const [done, setDone] = useState(store ? 2 : 0)
  const at = store?.last_event_at ? 4 : done
  const next = <Ask label={t('Done, next')} call={async () => setDone(at + 1)} />
  const event = t(
    'Settings → Notifications → Webhooks → Create webhook: “Order payment”, JSON, and this URL:',
  )
  const url = <Copy label={t('URL')} text={`${location.origin}/webhooks/store-sales`} />
  const cod = t('For cash on delivery also “Order creation”, “Order update” and “Order cancellation”.')
  const connected = () => navigate('/stores', { replace: true })
  const form = <Form {...ask('stores.connect', stores.connect.mutate, {}, connected)} />
  const theme = t('Online Store → Themes → Edit code → layout/theme.liquid: this line above </head>.')
  const line = <Copy label={t('Line for the theme')} text={store?.script_tag ?? ''} />
  return (
    <Steps
      at={at}
      steps={[
        [t('Create the webhook in Shopify'), event, url, cod, next],
        [t('Paste the name of the shop and the secret'), form],
        [t('Put the script into the theme'), theme, line, next],
        [t('Send a test notification'), t('Waiting for the first signed order…')],
      ]}
    />
  )
}

function StoreCard({ store, changed }: { store: Store; changed: () => Promise<void> }) {
  const { id, status, last_refusal: refused, tracked_30d: tracked } = store
  const [isNew] = useState(store.last_event_at === null)
  const sources = Object.entries(tracked).map(([source, orders]) => `${word(source)} ${count(orders)}`)
  const found: [string, string] = [t('Orders of 30 days by what led to a link'), sources.join(' · ')]
  return (
    <Card title={store.shop_domain} actions={<Status value={status} />}>
      <p role="status">
        {t(ADVICE[status])}{' '}
        {status === 'rejecting' && refused && t(ADVICE[refused.reason], { at: when(refused.at) })}
      </p>
      {isNew && <Connection store={store} />}
      <Facts of={store} items={['last_event_at', 'unreadable_7d', found]} />
      <Copy label={t('Line for the theme')} text={store.script_tag} />
      <Asks
        items={[
          ask('stores.rotateSecret', stores.rotateSecret.mutate, { id }, changed),
          ask('stores.rename', stores.rotateSecret.mutate, { id }, changed),
          ask('stores.remove', stores.remove.mutate, { id }, changed),
        ]}
      />
    </Card>
  )
}

/** Where the account's own programs receive events. */
export function Endpoints() {
  const list = useList<Endpoint>(LISTS.endpoints, webhooks.list.query)
  const names = useRole() === 'merchant' ? MERCHANT_EVENTS : CREATOR_EVENTS
  const events = field('events', { value: names, options: names })
  const show = (answer: { secret?: string }) => {
    if (answer.secret) reveal(t('Copy the secret now'), answer.secret)
    return list.reload()
  }
  const card = (endpoint: Endpoint) => {
    const { id, enabled } = endpoint
    const edit = ask('webhooks.update', webhooks.update.mutate, { id }, list.reload)
    const turn = enabled ? 'webhooks.disable' : 'webhooks.enable'
    const deliveries = () => navigate(`/webhooks/${id}`)
    return (
      <Card title={endpoint.url} actions={<Status value={enabled ? 'enabled' : 'disabled'} />}>
        <Facts of={endpoint} items={['description', 'events', 'disabled_reason', 'failing_since']} />
        <a href={`/app/webhooks/${id}`}>{t('Deliveries')}</a>
        <Asks
          items={[
            enabled && ask('webhooks.test', webhooks.test.mutate, { id }, deliveries),
            ask(turn, webhooks.update.mutate, { id, enabled: !enabled }, list.reload),
            { ...edit, fields: ['url', events], values: endpoint },
            ask('webhooks.rotate', webhooks.rotate.mutate, { id }, show),
            ask('webhooks.remove', webhooks.remove.mutate, { id }, list.reload),
          ]}
        />
      </Card>
    )
  }
  const add = ask('webhooks.create', webhooks.create.mutate, {}, show)
  const actions = <Ask {...add} fields={['url', 'description?', events]} />
  return (
    <ListPage list={list} actions={actions} card={card}>
      <Revealed />
    </ListPage>
  )
}

/** What was sent to an endpoint in the last 30 days, and how it answered. */
export function Deliveries({ params: { id = '' } }: { params: Record<string, string> }) {
  const list = useList<Delivery>(LISTS.deliveries, webhooks.deliveries.query, { id })
  usePoll(list.reload)
  const attempts = ({ attempts, attempt_log }: Delivery) => (
    <details>
      <summary>{count(attempts)}</summary>
      {attempt_log.map(({ at, response_status, error, duration_ms }) => (
        <p key={at}>
          <When at={at} /> · {response_status} {error && <Said detail={error} />} · {count(duration_ms)} ms
        </p>
      ))}
    </details>
  )
  const retry = ({ id, state }: Delivery) =>
    state === 'failed' && <Ask {...ask('webhooks.retry', webhooks.retry.mutate, { id }, list.put)} />
  return <ListPage list={list} cells={{ attempts, retry }} />
}

type Job = Outputs['jobs']['get']
type Request = Omit<Inputs['jobs']['startExport'], 'format'> & { format: string }

/** The account's rows as files; with `billing_cycle_id` in the address, what an invoice is made of. */
export function Exports() {
  const own = useRole() === 'merchant' ? 'billing_cycles' : 'payouts'
  const cycle = route.use().query.get('billing_cycle_id')
  const list = useList<Job>(LISTS.exports, jobs.list.query)
  usePoll(list.reload, list.data?.items.some(isUnfinished))
  const start = ({ format, ...given }: Request) => {
    const file = { format: format === 'ndjson' ? format : 'csv', excel: format === 'excel' } as const
    return jobs.startExport.mutate({ ...given, ...file, billing_cycle_id: cycle ?? undefined })
  }
  const options = cycle ? ['sales'] : [...(fieldOf('resource').options ?? []), own]
  const fields = [field('resource', { options }), 'format', 'from?', 'to?']
  return (
    <ListPage list={list} cells={{ file }} lead={cycle ? t('The sales of one billing cycle.') : undefined}>
      <Card>
        <Form fields={fields} label={t('Start the export')} call={start} done={list.put} />
      </Card>
    </ListPage>
  )
}

const isUnfinished = (job: Job) => job.finished_at === null

/** The file, how much of it is there, or why there is none. */
const file = (job: Job) => (
  <>
    {isUnfinished(job) && <progress value={job.progress} aria-label={t('Progress')} />}
    {job.error && <Failed error={refusal({ detail: job.error, code: 'internal' })} />}
    {job.download_url && <Ask {...ask('jobs.download', () => download(`/jobs/${job.id}/file`))} />}
  </>
)
