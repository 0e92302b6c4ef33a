import type { ComponentChildren } from 'preact'
import type { Outputs } from '../../index.ts'
import { client } from '../client.ts'
import { tell } from '../news.ts'
import { type AskProps, Asks } from '../parts/ask.tsx'
import { field, optionsOf } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Card } from '../parts/page.tsx'
import { Facts, Theirs, When } from '../parts/values.tsx'
import { t } from '../text.ts'
import { fieldOf, word } from '../words.ts'
import { suspensionAsks } from './users.tsx'

type Flag = Outputs['admin']['listFlagged']['items'][number]
type Call = (input: never) => Promise<unknown>

/** The queue for people. Nothing here moves money. */
export function Flags() {
  const options = [['', t('Open')] as const, ...optionsOf(['resolved'])]
  const status = field('status?', { type: 'select', options })
  const kinds = choice('kind', ['offer_vetting', 'credit_request', 'self_purchase'])
  const filters = [status, choice('severity', ['high', 'medium', 'low']), kinds]
  const list = useFiltered<Flag>('flags', filters, client.admin.listFlagged.query)
  const decided = () => {
    tell(t('Done'))
    return list.reload()
  }
  /** A button that calls this with the reason, and loads the flags again. */
  const decision = (label: string, call: Call, given: object, fields = ['reason']): AskProps => ({
    label,
    fields,
    onSubmit: (input: object) => call({ ...given, ...input } as never).then(decided),
  })
  const { resolveFlag, vetOffer } = client.admin
  const actionsOf = ({ id, kind, subject_type, subject_id, status, evidence }: Flag) => {
    if (status !== 'open') return []
    const offer = { id: subject_id, commission_rate: evidence.commission_rate }
    return [
      decision(t('Resolve'), resolveFlag.mutate, { id }, ['note']),
      ...(kind === 'offer_vetting'
        ? [
            decision(t('Approve the offer'), vetOffer.mutate, { ...offer, decision: 'approve' }),
            decision(t('Reject the offer'), vetOffer.mutate, { ...offer, decision: 'reject' }),
          ]
        : []),
      ...(subject_type === 'user' ? suspensionAsks({ id: subject_id }, decided) : []),
    ]
  }
  return (
    <ListPage
      title={t('Flags')}
      lead={t('Accounts, offers and sales that need a decision.')}
      list={list}
      empty={[t('Nothing to look at.'), t('New flags appear here when a detector finds something.')]}
      card={(flag) => (
        <Card title={word(flag.kind)}>
          <p lang="en" dir="ltr" children={flag.summary} />
          <Facts
            of={flag}
            items={[
              ...['severity', 'created_at', 'note'],
              ...factsIn({ subject_id: flag.subject_id, ...flag.evidence }),
            ]}
          />
          <Asks items={actionsOf(flag)} />
        </Card>
      )}
    />
  )
}

/** Detectors name what they found: lists are joined, records are facts again. */
const factsIn = (found: object): [string, ComponentChildren][] =>
  Object.entries(found).map(([name, value]) => [fieldOf(name).label, <Found key={name} value={value} />])

const ID_END = 8

function Found({ value }: { value: unknown }) {
  const text = String(value)
  if (value === null) return <>–</>
  if (Array.isArray(value)) return value.map((one, index) => [index > 0 && ', ', <Found value={one} />])
  if (typeof value === 'object') return <Facts items={factsIn(value)} />
  if (/^\d{4}-\d\d-\d\dT/.test(text)) return <When at={text} />
  if (/^[\da-f-]{36}$/.test(text)) return <code title={text}>{text.slice(-ID_END)}</code>
  return <Theirs>{text}</Theirs>
}
