import { useId, useState } from 'preact/hooks'
import type { Outputs } from '../../index.ts'
import { client, session, useFigures } from '../client.ts'
import { Ask, Asks } from '../parts/ask.tsx'
import { ListPage, useFiltered } from '../parts/list.tsx'
import { Qr } from '../parts/pictures.tsx'
import { Copy, Status } from '../parts/values.tsx'
import { Link } from '../router.tsx'
import { t } from '../text.ts'

type Shared = Outputs['links']['list']['items'][number]

const stateOf = ({ active, ended_at }: Shared) => (active ? 'active' : ended_at ? 'ended' : 'paused')

/** A creator's links to share, or those to a merchant's offers. */
export function Links() {
  const isMerchant = session.use()?.role === 'merchant'
  const list = useFiltered<Shared>('links', ['offer_id?'], client.links.list.query)
  useFigures(list.reload)
  const actions = (link: Shared) => {
    const { slug } = link
    const { setCoupon, end } = client.links
    const change = (input: object) => setCoupon.mutate({ ...input, slug }).then(list.put)
    const stop = (input: object) => end.mutate({ ...input, slug, status: 'ended' }).then(list.put)
    const forGood = t('For good. Clicks until now still earn commission within their days.')
    const asks = [
      { label: t('Coupon code'), fields: ['coupon_code?'], values: link, onSubmit: change },
      { label: t('End'), text: forGood, fields: ['reason?'], danger: true, onSubmit: stop },
    ]
    return (
      <div class="actions">
        {!isMerchant && <Share {...link} />}
        {isMerchant && !link.ended_at && <Asks items={asks} />}
        <Link to={`/sales?affiliate_link_slug=${slug}`}>{t('Sales')}</Link>
      </div>
    )
  }
  return (
    <ListPage
      title={t('Links')}
      list={list}
      empty={[t('No links yet.'), t('An approved application makes one.')]}
      columns={[
        'offer',
        ...(isMerchant ? (['creator'] as const) : []),
        { head: t('Status'), cell: (link) => <Status value={stateOf(link)} /> },
        'coupon_code',
        'commission_rate',
        'clicks',
        'accepted_sales',
        'commission_earned',
        { head: t('Actions'), cell: actions },
      ]}
    />
  )
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
