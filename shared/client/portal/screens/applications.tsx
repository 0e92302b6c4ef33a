import type { Outputs } from '../../index.ts'
import { client, session } from '../client.ts'
import { Asks } from '../parts/ask.tsx'
import { field } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Outside, Status, Theirs } from '../parts/values.tsx'
import { useRoute } from '../router.tsx'
import { percent, t } from '../text.ts'

type Application = Outputs['applications']['decide']

/** Applications to the merchant's offers, to decide; a creator's own, to follow. */
export function Applications() {
  const isMerchant = session.use()?.role === 'merchant'
  const { list: own, listForOffer, decide, withdraw } = client.applications
  const states = choice('status', ['pending', 'approved', 'rejected', 'withdrawn'])
  const load = useRoute().query.has('id') ? listForOffer.query : own.query
  const list = useFiltered<Application>('applications', [states, field('id?', { type: 'hidden' })], load)
  const hint = t("In place of the offer's; a high one only if an admin approved the offer at such a rate.")
  const terms = ['coupon_code?', field('commission_rate?', { hint }), 'reason?']
  const actions = ({ id, status }: Application) => {
    const approve = (input: object) => decide.mutate({ ...input, id, decision: 'approve' }).then(list.put)
    const reject = (input: object) => decide.mutate({ ...input, id, decision: 'reject' }).then(list.put)
    const end = () => withdraw.mutate({ id }).then(list.reload)
    if (status !== 'pending') return null
    const asks = [
      isMerchant && { label: t('Approve'), fields: terms, onSubmit: approve },
      isMerchant && { label: t('Reject'), fields: ['reason?'], danger: true, onSubmit: reject },
      !isMerchant && { label: t('Withdraw'), fields: [], onSubmit: end },
    ]
    return <Asks items={asks} />
  }
  const message = ({ message, promotion_url: url }: Application) => [
    message && <Theirs key="message">{message}</Theirs>,
    url && <Outside key="url" href={url} />,
  ]
  const decision = ({ status, decision_reason }: Application) => [
    <Status key="status" value={status} />,
    decision_reason && <Theirs key="reason">{` ${decision_reason}`}</Theirs>,
  ]
  const locked = ({ locked_commission_rate: rate, affiliate_link: link }: Application) =>
    rate && <Theirs>{[percent(rate), link?.coupon_code].filter(Boolean).join(' · ')}</Theirs>
  const how = isMerchant ? t('Creators apply to live offers.') : t('Apply to an offer.')
  return (
    <ListPage
      title={t('Applications')}
      list={list}
      empty={[t('No applications yet.'), how]}
      columns={[
        'offer',
        ...(isMerchant ? (['creator'] as const) : []),
        { head: t('Message'), cell: message },
        { head: t('Status'), cell: decision },
        { head: t('Terms'), cell: locked },
        'created_at',
        { head: t('Decision'), cell: actions },
      ]}
    />
  )
}
