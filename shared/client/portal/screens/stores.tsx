import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, usePoll } from '../client.ts'
import { Ask, Asks } from '../parts/ask.tsx'
import { Form } from '../parts/form.tsx'
import { ListPage, useFiltered } from '../parts/list.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Steps } from '../parts/steps.tsx'
import { Copy, Facts, Status } from '../parts/values.tsx'
import { Link, navigate } from '../router.tsx'
import { count, t, when } from '../text.ts'
import { ADVICE, word } from '../words.ts'

type Store = Outputs['stores']['get']

const NEW = ['shop_domain', 'webhook_secret']
const NAME = ['shop_domain']
const SECRET = ['webhook_secret', 'revoke_former']

/** The merchant's stores, each with what arrives from it. */
export function Stores() {
  const list = useFiltered<Store>('stores', [], client.stores.list.query)
  usePoll(list.reload)
  return (
    <ListPage
      title={t('Stores')}
      actions={<Link to="/stores/new" class="button main" children={t('Connect a store')} />}
      list={list}
      empty={[t('No store yet.'), t('Connect your Shopify store: five minutes, no app.')]}
      card={(store) => <StoreCard store={store} changed={list.reload} />}
    />
  )
}

export function ConnectStore() {
  const guide = <a href="/docs/guides/connect-shopify">{t('The guide with pictures')}</a>
  return <Page title={t('Connect a store')} lead={guide} children={<Card children={<Connection />} />} />
}

/** The way from nothing to the first signed order. */
function Connection({ store }: { store?: Store }) {
  const [done, setDone] = useState(store ? 2 : 0)
  const at = store?.last_event_at ? 4 : done
  const next = <Ask label={t('Done, next')} onSubmit={async () => setDone(at + 1)} />
  const connect = async (input: Inputs['stores']['connect']) => {
    await client.stores.connect.mutate(input)
    navigate('/stores', { replace: true })
  }
  const event = t(
    'Settings → Notifications → Webhooks → Create webhook: “Order payment”, JSON, and this URL:',
  )
  const url = <Copy label={t('URL')} text={`${location.origin}/webhooks/store-sales`} />
  const cod = t('For cash on delivery also “Order creation”, “Order update” and “Order cancellation”.')
  const form = <Form fields={NEW} submit={t('Connect')} onSubmit={connect} />
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
  const { id, status, last_refusal: refusal, tracked_30d: tracked } = store
  const [isNew] = useState(store.last_event_at === null)
  const change = (input: object) => client.stores.rotateSecret.mutate({ ...input, id }).then(changed)
  const remove = () => client.stores.remove.mutate({ id }).then(changed)
  const sources = Object.entries(tracked).map(([source, orders]) => `${word(source)} ${count(orders)}`)
  const former = t('The former one stays valid for 24 hours.')
  const warning = t('It can report no further sales. Without any store, your live offers are paused.')
  const found: [string, string] = [t('Orders of 30 days by what led to a link'), sources.join(' · ')]
  return (
    <Card title={store.shop_domain} actions={<Status value={status} />}>
      <p role="status">
        {t(ADVICE[status] ?? '')}{' '}
        {status === 'rejecting' && refusal && t(ADVICE[refusal.reason] ?? '', { at: when(refusal.at) })}
      </p>
      {isNew && <Connection store={store} />}
      <Facts of={store} items={['last_event_at', 'unreadable_7d', found]} />
      <Copy label={t('Line for the theme')} text={store.script_tag} />
      <Asks
        items={[
          { label: t('Replace the secret'), text: former, fields: SECRET, onSubmit: change },
          { label: t('Change the name'), text: t('Its sales stay.'), fields: NAME, onSubmit: change },
          { label: t('Remove'), text: warning, danger: true, onSubmit: remove },
        ]}
      />
    </Card>
  )
}
