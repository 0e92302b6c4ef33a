import type { Outputs } from '../../index.ts'
import { client, useQuery } from '../client.ts'
import { Asks } from '../parts/ask.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Answered } from '../parts/page.tsx'
import { Facts, Status } from '../parts/values.tsx'
import { count, money, t } from '../text.ts'
import { EFFECTS } from '../words.ts'

type User = Outputs['admin']['listUsers']['items'][number]
type Account = Pick<User, 'id'> & Partial<User>
type Preview = Outputs['admin']['previewSuspension']

/** Every account, to suspend or reinstate. */
export function Users() {
  const roles = choice('role', ['merchant', 'creator', 'admin'])
  const states = choice('state', ['active', 'suspended'])
  const load = ({ state, ...input }: { state?: string }) =>
    client.admin.listUsers.query({ ...input, suspended: state ? state === 'suspended' : undefined })
  const list = useFiltered<User>('users', ['q?', roles, states], load)
  const state = ({ suspended }: User) => <Status value={suspended ? 'suspended' : 'active'} />
  const decision = (user: User) => <Asks items={suspensionAsks(user, list.put)} />
  const cells = [
    { head: t('Status'), cell: state },
    { head: t('Decision'), cell: decision },
  ]
  const columns = ['display_name', 'email', 'role', 'created_at', ...cells] as const
  return <ListPage title={t('Users')} list={list} empty={[t('No accounts yet.'), '']} columns={columns} />
}

/** What admins decide about an account, both ways unless its state is given. */
export function suspensionAsks({ id, suspended }: Account, done: (user: User) => unknown) {
  const { suspendUser, reinstateUser } = client.admin
  const suspend = (input: object) => suspendUser.mutate({ ...input, id }).then(done)
  const reinstate = (input: object) => reinstateUser.mutate({ ...input, id }).then(done)
  const question = { fields: ['reason'], danger: true, children: <Effects id={id} /> }
  return [
    !suspended && { label: t('Suspend'), onSubmit: suspend, ...question },
    suspended !== false && { label: t('Reinstate'), onSubmit: reinstate, fields: ['reason'] },
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
