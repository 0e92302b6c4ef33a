import type { ComponentChildren } from 'preact'
import type { Outputs } from '../../index.ts'
import { client, useQuery } from '../client.ts'
import { ListPage, useList } from '../parts/list.tsx'
import { Asks, ask, EFFECTS, LISTS } from '../parts/members.tsx'
import { Answered, Card, Facts, Said, Status, shown, When } from '../parts/page.tsx'
import { tell } from '../state.ts'
import { addTexts, count, fieldOf, money, t, translated, word } from '../text.ts'

type Flag = Outputs['admin']['listFlagged']['items'][number]
type User = Outputs['admin']['listUsers']['items'][number]
type Account = Pick<User, 'id'> & Partial<User>
type Preview = Outputs['admin']['previewSuspension']

/** The queue for people. Nothing here moves money. */
export function Flags() {
  const texts = useQuery('texts of flags', async () => {
    addTexts((await import('../flags.json')).default)
    // A function is not kept for the next view, which adds the texts again.
    return addTexts
  })
  const list = useList<Flag>(LISTS.flags, client.admin.listFlagged.query)
  const { resolveFlag, vetOffer } = client.admin
  const decided = () => {
    tell(t('Done'))
    return list.reload()
  }
  const actionsOf = ({ id, kind, subject_type, subject_id, status, evidence }: Flag) => {
    if (status !== 'open') return []
    const offer = { id: subject_id, commission_rate: evidence.commission_rate as number }
    const isOffer = kind === 'offer_vetting'
    return [
      ask('admin.resolveFlag', resolveFlag.mutate, { id }, decided),
      isOffer && ask('admin.approveOffer', vetOffer.mutate, { ...offer, decision: 'approve' }, decided),
      isOffer && ask('admin.rejectOffer', vetOffer.mutate, { ...offer, decision: 'reject' }, decided),
      ...(subject_type === 'user' ? suspensionAsks({ id: subject_id }, decided) : []),
    ]
  }
  const card = (flag: Flag) => (
    <Card title={word(flag.kind)}>
      <p>
        <Said detail={flag.summary} code={flag.kind} />
      </p>
      <Facts of={flag} items={['severity', 'created_at', ...foundIn(flag)]} />
      <Asks items={actionsOf(flag)} />
    </Card>
  )
  return <Answered of={texts}>{() => <ListPage list={list} card={card} />}</Answered>
}

/** Fields that elsewhere are called or shown otherwise. */
const HERE: Record<string, string> = {
  id: 'record_id',
  scope: 'sent_by',
  events: 'found_events',
  reason: 'found_reason',
  note: 'resolution',
}

const foundIn = ({ note, subject_id, evidence }: Flag) =>
  factsIn({ ...(note && { note }), subject_id, ...evidence })

/** Detectors name what they found: lists are joined, records are facts again. */
const factsIn = (found: object): [string, ComponentChildren][] =>
  Object.entries(found).map(([wire, value]) => {
    const name = HERE[wire] ?? wire
    return [translated(fieldOf(name).label), <Found key={name} name={name} value={value} />]
  })

const ID_END = 8

function Found({ name, value }: { name: string; value: unknown }) {
  const text = String(value)
  if (value === null) return <>–</>
  if (Array.isArray(value)) {
    const comma = typeof value[0] !== 'object' && ', '
    return value.map((one, at) => [at > 0 && comma, <Found name={name} value={one} />])
  }
  if (typeof value === 'object') return <Facts items={factsIn(value)} />
  if (/^\d{4}-\d\d-\d\dT/.test(text)) return <When at={text} />
  if (/^[\da-f-]{36}$/.test(text)) return <code title={text}>{text.slice(-ID_END)}</code>
  return <>{shown({ [name]: value }, name)}</>
}

/** Every account, to suspend or reinstate. */
export function Users() {
  const load = ({ state, ...input }: { state?: string }) =>
    client.admin.listUsers.query({ ...input, suspended: state ? state === 'suspended' : undefined })
  const list = useList<User>(LISTS.users, load)
  const status = ({ suspended }: User) => <Status value={suspended ? 'suspended' : 'active'} />
  const decision = (user: User) => <Asks items={suspensionAsks(user, list.put)} />
  return <ListPage list={list} cells={{ status, decision }} />
}

/** What admins decide about an account, both ways unless its state is given. */
function suspensionAsks({ id, suspended }: Account, done: (user: User) => unknown) {
  const { suspendUser, reinstateUser } = client.admin
  const suspend = ask('admin.suspendUser', suspendUser.mutate, { id }, done)
  return [
    !suspended && { ...suspend, children: <Effects id={id} /> },
    suspended !== false && ask('admin.reinstateUser', reinstateUser.mutate, { id }, done),
  ]
}

/** What a suspension would do. */
function Effects({ id }: { id: string }) {
  const answer = useQuery(`suspension ${id}`, () => client.admin.previewSuspension.query({ id }))
  const facts = ({ creator, merchant, ...both }: Preview) =>
    Object.entries({ ...both, ...creator, ...merchant }).map(([name, figure]): [string, string] => [
      t(EFFECTS[name] ?? name),
      figureText(figure),
    ])
  return <Answered of={answer}>{(preview) => <Facts items={facts(preview)} />}</Answered>
}

function figureText(figure: number | string | { count: number; amount: string }): string {
  if (typeof figure === 'object') return `${count(figure.count)} · ${money(figure.amount)}`
  return typeof figure === 'number' ? count(figure) : money(figure)
}
