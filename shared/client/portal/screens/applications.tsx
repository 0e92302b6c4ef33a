import type { Outputs } from '../../index.ts'
import { client, session } from '../client.ts'
import { Asks } from '../parts/ask.tsx'
import { field } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { useRoute } from '../router.tsx'
import { percent, t } from '../text.ts'

type Application = Outputs['applications']['decide']

const COLUMNS = ['message', 'promotion_url', 'status', 'decision_reason', 'created_at'] as const

/** Applications to the merchant's offers, to decide; a creator's own, to follow. */
export function Applications() {
  const isMerchant = session.use()?.role === 'merchant'
  const { list: own, listForOffer, decide, withdraw } = client.applications
  const states = choice('status', ['pending', 'approved', 'rejected', 'withdrawn'])
  const load = useRoute().query.has('id') ? listForOffer.query : own.query
  const list = useFiltered<Application>('applications', [states, field('id?', { type: 'hidden' })], load)
  const hint = t(
    "In place of the offer's. A high one first needs an admin's approval of the offer at such a rate.",
  )
  const terms = ['coupon_code?', field('commission_rate?', { hint }), 'reason?']
  const locked = ({ locked_commission_rate: rate, affiliate_link: link }: Application) =>
    rate === null ? '–' : [percent(rate), link?.coupon_code].filter(Boolean).join(' · ')
  const actions = ({ id, status }: Application) => {
    const approve = (input: object) => decide.mutate({ ...input, id, decision: 'approve' }).then(list.put)
    const reject = (input: object) => decide.mutate({ ...input, id, decision: 'reject' }).then(list.put)
    const end = () => withdraw.mutate({ id }).then(list.reload)
    const asks = isMerchant
      ? [
          { label: t('Approve'), fields: terms, onSubmit: approve },
          { label: t('Reject'), fields: ['reason?'], danger: true, onSubmit: reject },
        ]
      : [{ label: t('Withdraw'), text: t('The merchant no longer sees it.'), onSubmit: end }]
    return status === 'pending' && <Asks items={asks} />
  }
  return (
    <ListPage
      title={t('Applications')}
      list={list}
      empty={[
        t('No applications yet.'),
        isMerchant ? t('Creators apply to live offers.') : t('Apply to an offer.'),
      ]}
      columns={[
        'offer',
        ...(isMerchant ? (['creator'] as const) : []),
        ...COLUMNS,
        { head: t('Terms'), cell: locked },
        { head: t('Decision'), cell: actions },
      ]}
    />
  )
}
