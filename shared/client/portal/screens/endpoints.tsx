import { useState } from 'preact/hooks'
import { CREATOR_EVENTS, type Inputs, MERCHANT_EVENTS, type Outputs } from '../../index.ts'
import { client, session, usePoll } from '../client.ts'
import { Ask, Asks } from '../parts/ask.tsx'
import { field } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Card } from '../parts/page.tsx'
import { Copy, Facts, Status, Theirs, When } from '../parts/values.tsx'
import { Link, navigate } from '../router.tsx'
import { count, t } from '../text.ts'

type Endpoint = Outputs['webhooks']['get']
type Delivery = Outputs['webhooks']['retry']

const { webhooks } = client

/** Where the account's own programs receive events. */
export function Endpoints() {
  const list = useFiltered<Endpoint>('endpoints', [], webhooks.list.query)
  const [secret, setSecret] = useState('')
  const names = session.use()?.role === 'merchant' ? MERCHANT_EVENTS : CREATOR_EVENTS
  const events = field('events', { value: names, options: names.map((name) => [name, name]) })
  const save = (answer: { id: string; secret?: string }) => {
    if (answer.secret) setSecret(answer.secret)
    return list.reload()
  }
  const create = (input: Inputs['webhooks']['create']) => webhooks.create.mutate(input).then(save)
  const card = (endpoint: Endpoint) => {
    const { id, enabled } = endpoint
    const test = () => webhooks.test.mutate({ id }).then(() => navigate(`/webhooks/${id}`))
    const change = (input: object) => webhooks.update.mutate({ ...input, id }).then(save)
    const rotate = () => webhooks.rotate.mutate({ id }).then(save)
    const remove = () => webhooks.remove.mutate({ id }).then(list.reload)
    const both = t('Deliveries are signed with both secrets for 24 hours.')
    return (
      <Card title={endpoint.url} actions={<Status value={enabled ? 'enabled' : 'disabled'} />}>
        <Facts of={endpoint} items={['description', 'events', 'disabled_reason', 'failing_since']} />
        <Link to={`/webhooks/${id}`}>{t('Deliveries')}</Link>
        <Asks
          items={[
            enabled && { label: t('Send a test'), onSubmit: test },
            { label: enabled ? t('Disable') : t('Enable'), onSubmit: () => change({ enabled: !enabled }) },
            { label: t('Edit'), fields: ['url', events], values: endpoint, onSubmit: change },
            { label: t('Replace the secret'), text: both, onSubmit: rotate },
            { label: t('Remove'), fields: [], danger: true, onSubmit: remove },
          ]}
        />
      </Card>
    )
  }
  const fields = ['url', field('description?', { type: 'text' }), events]
  return (
    <ListPage
      title={t('Webhooks')}
      lead={t('Events of your account, sent to your own programs and signed.')}
      actions={<Ask class="main" label={t('Add an endpoint')} fields={fields} onSubmit={create} />}
      list={list}
      empty={[t('No endpoint yet.'), t('Add the address of a program of yours.')]}
      card={card}
    >
      {secret && (
        <Card title={t('Copy the secret now: it is not shown again.')}>
          <Copy label={t('Secret')} text={secret} />
        </Card>
      )}
    </ListPage>
  )
}

/** What was sent to an endpoint in the last 30 days, and how it answered. */
export function Deliveries({ params: { id = '' } }: { params: Record<string, string> }) {
  const states = choice('state', ['pending', 'delivered', 'failed'])
  const list = useFiltered<Delivery>('deliveries', [states], webhooks.deliveries.query, { id })
  usePoll(list.reload)
  const attempts = ({ attempts, attempt_log }: Delivery) => (
    <details>
      <summary>{count(attempts)}</summary>
      {attempt_log.map(({ at, response_status, error, duration_ms }) => (
        <p key={at}>
          <When at={at} /> · {response_status} <Theirs>{error}</Theirs> · {count(duration_ms)} ms
        </p>
      ))}
    </details>
  )
  const retry = ({ id, state }: Delivery) =>
    state === 'failed' && (
      <Ask label={t('Retry')} onSubmit={() => webhooks.retry.mutate({ id }).then(list.put)} />
    )
  return (
    <ListPage
      title={t('Deliveries')}
      list={list}
      empty={[t('Nothing was sent yet.'), t('Send a test to see how the endpoint answers.')]}
      columns={[
        ...(['event_type', 'state', 'created_at', 'next_attempt_at', 'response_body'] as const),
        { head: t('Attempts'), cell: attempts },
        { head: t('Retry'), cell: retry },
      ]}
    />
  )
}
