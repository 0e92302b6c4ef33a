import type { Inputs, Outputs } from '../../index.ts'
import { client, useQuery } from '../client.ts'
import { Asks } from '../parts/ask.tsx'
import { Form } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Answered, Card, Page } from '../parts/page.tsx'
import { Status, Theirs } from '../parts/values.tsx'
import { Link, navigate } from '../router.tsx'
import { t } from '../text.ts'
import { VETTING } from '../words.ts'

type Offer = Outputs['offers']['get']

const TERMS = ['commission_rate', 'attribution_window_days', 'product_ids?']
const FIELDS = ['title', 'description?', 'product_url', 'image_url?', 'category', 'niche', ...TERMS]
const USUAL = { attribution_window_days: 30 }
const COLUMNS = ['status', 'vetting', 'category', 'commission_rate', 'updated_at'] as const

/** The merchant's own offers, in every state. */
export function MyOffers() {
  const states = choice('status', ['draft', 'live', 'paused', 'ended'])
  const list = useFiltered<Offer>('my offers', [states], client.offers.list.query, { mine: true })
  const link = ({ id, title }: Offer) => <Link to={`/my-offers/${id}`} children={<Theirs>{title}</Theirs>} />
  return (
    <ListPage
      title={t('My offers')}
      actions={<Link to="/my-offers/new" class="button main" children={t('New offer')} />}
      list={list}
      empty={[t('No offers yet.'), t('Make one, and put it live once a store is connected.')]}
      columns={[{ head: t('Offer'), cell: link }, ...COLUMNS]}
    />
  )
}

export function NewOffer() {
  const create = async (input: Inputs['offers']['create']) => {
    const { id } = await client.offers.create.mutate(input)
    navigate(`/my-offers/${id}`, { replace: true })
  }
  return (
    <Page title={t('New offer')} lead={t('It begins as a draft that only you see.')}>
      <Card>
        <Form fields={FIELDS} values={USUAL} submit={t('Save the draft')} onSubmit={create} />
      </Card>
    </Page>
  )
}

export function EditOffer({ params: { id = '' } }: { params: Record<string, string> }) {
  const query = useQuery(`offer ${id}`, () => client.offers.get.query({ id }))
  return (
    <Page title={query.data?.title ?? t('Offer')}>
      <Answered of={query}>{(offer) => <Editor offer={offer} changed={query.reload} />}</Answered>
    </Page>
  )
}

function Editor({ offer, changed }: { offer: Offer; changed: () => Promise<void> }) {
  const { id, status } = offer
  const save = (input: object) => client.offers.update.mutate({ ...input, id }).then(changed)
  const to = (next: Offer['status']) => () =>
    client.offers.setStatus.mutate({ id, status: next }).then(changed)
  const isOff = status === 'draft' || status === 'paused'
  const isFinal = t('For good: its links earn no more.')
  return (
    <>
      <Card title={t('State')} actions={<Status value={status} />}>
        <p>{t(VETTING[offer.vetting] ?? '', { reason: offer.vetting_reason ?? '' })}</p>
        <Asks
          items={[
            isOff && { label: t('Go live'), class: 'main', onSubmit: to('live') },
            status === 'live' && { label: t('Pause'), onSubmit: to('paused') },
            status !== 'draft' &&
              status !== 'ended' && { label: t('End'), text: isFinal, danger: true, onSubmit: to('ended') },
          ]}
        />
        <Link to={`/applications?id=${id}`}>{t('Applications')}</Link>{' '}
        <Link to={`/sales?offer_id=${id}`}>{t('Sales')}</Link>
      </Card>
      {status !== 'ended' && (
        <Card title={t('Edit')}>
          <p class="quiet">
            {t('Commission, days and products apply to later approvals: links keep their terms.')}
          </p>
          <Form fields={FIELDS} values={offer} submit={t('Save')} onSubmit={save} />
        </Card>
      )}
    </>
  )
}
