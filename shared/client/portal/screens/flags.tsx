import type { Inputs, Outputs } from '../../index.ts'
import { client } from '../client.ts'
import { tell } from '../news.ts'
import { type AskProps, Asks } from '../parts/ask.tsx'
import { field, optionsOf } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Card } from '../parts/page.tsx'
import { Facts } from '../parts/values.tsx'
import { t } from '../text.ts'

type Flag = Outputs['admin']['listFlagged']['items'][number]
type Decide<Input> = { mutate(input: Input): Promise<unknown> }

/** The queue for people. Nothing here moves money. */
export function Flags() {
  const options = [['', t('Open')] as const, ...optionsOf(['resolved'])]
  const filters = [
    field('status?', { type: 'select', options }),
    choice('severity', ['high', 'medium', 'low']),
  ]
  const list = useFiltered('flags', filters, (input: Inputs['admin']['listFlagged']) =>
    client.admin.listFlagged.query(input),
  )
  /** A button that calls this with the reason, and takes the flags anew. */
  const decision = <Input extends object>(
    label: string,
    call: Decide<Input>,
    given: object,
    more: Partial<AskProps> = {},
  ): AskProps => ({
    label,
    fields: ['reason'],
    onSubmit: async (input: never) => {
      await call.mutate({ ...given, ...(input as object) } as Input)
      tell(t('Done'))
      await list.reload()
    },
    ...more,
  })
  const { resolveFlag, vetOffer, suspendUser, reinstateUser } = client.admin
  const suspend = (given: object, fields: string[]) => [
    decision(t('Suspend an account'), suspendUser, given, {
      fields,
      danger: true,
      text: t('Its sessions end, its links and offers stop. It can be reinstated.'),
    }),
    decision(t('Reinstate an account'), reinstateUser, given, { fields }),
  ]
  const actionsOf = ({ id, kind, subject_type, subject_id, status, evidence }: Flag): AskProps[] => {
    if (status !== 'open') return []
    const { commission_rate } = evidence as { commission_rate?: number }
    const offer = { id: subject_id, ...(commission_rate !== undefined && { commission_rate }) }
    return [
      decision(t('Resolve'), resolveFlag, { id }, { fields: ['note'] }),
      ...(kind === 'offer_vetting'
        ? [
            decision(t('Approve the offer'), vetOffer, { ...offer, decision: 'approve' }),
            decision(t('Reject the offer'), vetOffer, { ...offer, decision: 'reject' }),
          ]
        : []),
      ...(subject_type === 'user' ? suspend({ id: subject_id }, ['reason']) : []),
    ]
  }
  return (
    <ListPage
      title={t('Flags')}
      lead={t('What the service put before a person.')}
      actions={<Asks items={suspend({}, ['id', 'reason'])} />}
      list={list}
      empty={[t('Nothing to look at.'), t('New flags appear here when a detector finds something.')]}
      card={(flag) => (
        <Card title={flag.summary}>
          <Facts
            of={flag}
            items={[
              'severity',
              'kind',
              'created_at',
              'subject_id',
              ...(flag.note ? ['note'] : []),
              ...factsIn(flag),
            ]}
          />
          <Asks items={actionsOf(flag)} />
        </Card>
      )}
    />
  )
}

const factsIn = ({ evidence }: Flag): [string, string][] =>
  Object.entries(evidence).map(([name, value]) => [
    name.replaceAll('_', ' '),
    [value]
      .flat()
      .map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one)))
      .join(', '),
  ])
