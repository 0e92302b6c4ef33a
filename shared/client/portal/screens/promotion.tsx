import { useId, useState } from 'preact/hooks'
import type { Outputs } from '../../index.ts'
import { client, useFigures, useQuery, useRole } from '../client.ts'
import { Ask, Form } from '../parts/form.tsx'
import { ListPage, useList } from '../parts/list.tsx'
import { Asks, ask, LISTS, VETTING } from '../parts/members.tsx'
import { Answered, Card, Copy, LinkButton, Outside, Page, Status, Theirs } from '../parts/page.tsx'
import { Qr } from '../parts/pictures.tsx'
import { navigate, route } from '../state.ts'
import { percent, t } from '../text.ts'

type Offer = Outputs['offers']['get']
type Application = Outputs['applications']['decide']
type Shared = Outputs['links']['list']['items'][number]

const USUAL = { attribution_window_days: 30 }

/** The merchant's own offers, in every state. */
export function MyOffers() {
  const list = useList<Offer>(LISTS.my_offers, client.offers.list.query, { mine: true })
  const offer = ({ id, title }: Offer) => <Theirs href={`/app/my-offers/${id}`}>{title}</Theirs>
  const add = <LinkButton href="/app/my-offers/new">{t('New offer')}</LinkButton>
  return <ListPage list={list} actions={add} cells={{ offer }} />
}

export function NewOffer() {
  const show = ({ id }: Offer) => navigate(`/my-offers/${id}`, { replace: true })
  return (
    <Page title={t('New offer')} lead={t('It begins as a draft that only you see.')}>
      <Card>
        <Form {...ask('offers.create', client.offers.create.mutate, {}, show)} values={USUAL} />
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
  const { update, setStatus } = client.offers
  const isOff = status === 'draft' || status === 'paused'
  const isOut = status === 'live' || status === 'paused'
  return (
    <>
      <Card title={t('State')} actions={<Status value={status} />}>
        <p>{t(VETTING[offer.vetting], { reason: offer.vetting_reason ?? '' })}</p>
        <Asks
          items={[
            isOff && ask('offers.live', setStatus.mutate, { id, status: 'live' }, changed),
            status === 'live' && ask('offers.pause', setStatus.mutate, { id, status: 'paused' }, changed),
            isOut && ask('offers.end', setStatus.mutate, { id, status: 'ended' }, changed),
          ]}
        />
        <a href={`/app/applications?id=${id}`}>{t('Applications')}</a>{' '}
        <a href={`/app/sales?offer_id=${id}`}>{t('Sales')}</a>
      </Card>
      {status !== 'ended' && (
        <Card title={t('Edit')}>
          <p class="quiet">
            {t('Commission, days and products apply to later approvals: links keep their terms.')}
          </p>
          <Form {...ask('offers.update', update.mutate, { id }, changed)} values={offer} />
        </Card>
      )}
    </>
  )
}

/** Applications to the merchant's offers, to decide; a creator's own, to follow. */
export function Applications() {
  const isMerchant = useRole() === 'merchant'
  const { list: own, listForOffer, decide, withdraw } = client.applications
  const isOfOffer = route.use().query.has('id')
  const list = useList<Application>(LISTS.applications, isOfOffer ? listForOffer.query : own.query)
  const decision = ({ id, status }: Application) => {
    if (status !== 'pending') return null
    const asks = [
      isMerchant && ask('applications.approve', decide.mutate, { id, decision: 'approve' }, list.put),
      isMerchant && ask('applications.reject', decide.mutate, { id, decision: 'reject' }, list.put),
      !isMerchant && ask('applications.withdraw', withdraw.mutate, { id }, list.reload),
    ]
    return <Asks items={asks} />
  }
  const message = ({ message, promotion_url: url }: Application) => [
    message && <Theirs key="message">{message}</Theirs>,
    url && <Outside key="url" href={url} />,
  ]
  const status = ({ status, decision_reason }: Application) => [
    <Status key="status" value={status} />,
    decision_reason && <Theirs key="reason">{` ${decision_reason}`}</Theirs>,
  ]
  const terms = ({ locked_commission_rate: rate, affiliate_link: link }: Application) =>
    rate && <Theirs>{[percent(rate), link?.coupon_code].filter(Boolean).join(' · ')}</Theirs>
  return <ListPage list={list} cells={{ message, status, terms, decision }} />
}

const stateOf = ({ active, ended_at }: Shared) => (active ? 'active' : ended_at ? 'ended' : 'paused')

/** A creator's links to share, or those to a merchant's offers. */
export function Links() {
  const isMerchant = useRole() === 'merchant'
  const list = useList<Shared>(LISTS.links, client.links.list.query)
  useFigures(list.reload)
  const status = (link: Shared) => <Status value={stateOf(link)} />
  const actions = (link: Shared) => {
    const { slug } = link
    const { setCoupon, end } = client.links
    const asks = [
      { ...ask('links.setCoupon', setCoupon.mutate, { slug }, list.put), values: link },
      ask('links.end', end.mutate, { slug, status: 'ended' }, list.put),
    ]
    return (
      <div class="actions">
        {!isMerchant && <Share {...link} />}
        {isMerchant && !link.ended_at && <Asks items={asks} />}
        <a href={`/app/sales?affiliate_link_slug=${slug}`}>{t('Sales')}</a>
      </div>
    )
  }
  return <ListPage list={list} cells={{ status, actions }} />
}

const SUB_LENGTH = 64

/** The address to share, with the placement (`sub`) that the creator chooses. */
function Share({ url }: Shared) {
  const [sub, setSub] = useState('')
  const id = useId()
  const address = sub.trim() ? `${url}?sub=${encodeURIComponent(sub.trim())}` : url
  const choose = ({ currentTarget }: { currentTarget: HTMLInputElement }) => setSub(currentTarget.value)
  return (
    <Ask label={t('Share')}>
      <div class="field">
        <label for={id}>{t('Placement')}</label>
        <input id={id} dir="auto" maxLength={SUB_LENGTH} value={sub} onInput={choose} />
        <p class="quiet">{t('Such as “reel-12”: your figures then tell this place from others.')}</p>
      </div>
      <Copy text={address} label={t('Your link')} />
      <Qr text={address} label={t('QR code of your link')} />
    </Ask>
  )
}
