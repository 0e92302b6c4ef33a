import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, session, type User, useQuery } from '../client.ts'
import { Ask, Form, field } from '../parts/form.tsx'
import { Rows, useList } from '../parts/list.tsx'
import { ask, LISTS, Revealed, reveal } from '../parts/members.tsx'
import { Answered, Card, Copy, Facts, Page, Theirs } from '../parts/page.tsx'
import { Qr } from '../parts/pictures.tsx'
import { tell } from '../state.ts'
import { t, word } from '../text.ts'

type Session = Outputs['auth']['listSessions']['items'][number]
type ApiKey = Outputs['auth']['listApiKeys']['items'][number]

const saved = () => tell(t('Saved.'))

/** What an account sets about itself. */
export function AccountSettings() {
  const user = session.use()
  // Not loaded yet.
  if (!user?.email) return null
  return (
    <Page title={t('Account')}>
      {!user.email_verified_at && <Unverified />}
      <div class="columns">
        <Profile user={user} />
        <Password />
        <SecondFactor user={user} />
        {user.role !== 'admin' && <Notifications />}
      </div>
      <Sessions />
      {user.role !== 'admin' && <ApiKeys />}
      <Revealed />
    </Page>
  )
}

function Unverified() {
  const sent = () => tell(t('The e-mail is on its way.'))
  return (
    <div class="notice warn">
      {t('Your e-mail address is not verified. Open the link in the e-mail that you got.')}{' '}
      <Ask {...ask('auth.resendVerification', client.auth.resendVerification.mutate, {}, sent)} />
    </div>
  )
}

function Profile({ user }: { user: User }) {
  const show = (changed: User) => {
    session.set(changed)
    saved()
  }
  return (
    <Card title={t('Profile')}>
      <Facts of={user} items={['email', 'role', 'created_at']} />
      <Form {...ask('users.updateMe', client.users.updateMe.mutate, {}, show)} values={user} />
    </Card>
  )
}

function Password() {
  // Empty again after a change.
  const [changes, setChanges] = useState(0)
  const changed = () => {
    setChanges(changes + 1)
    tell(t('The password is changed, and every other session has ended.'))
  }
  return (
    <Card title={t('Password')}>
      <Form {...ask('auth.changePassword', client.auth.changePassword.mutate, {}, changed)} key={changes} />
    </Card>
  )
}

/** Sets the second factor up, renews its recovery codes, and turns it off. */
function SecondFactor({ user }: { user: User }) {
  const [enrollment, setEnrollment] = useState<Outputs['auth']['startTotp'] | null>(null)
  const { startTotp, confirmTotp, renewRecoveryCodes, disableTotp } = client.auth
  const turned = (second_factor: boolean) => session.set({ ...user, second_factor })
  const renewed = ({ recovery_codes: codes }: { recovery_codes: string[] }) =>
    reveal(t('Keep these codes: each logs you in once without the app'), codes.join(' '))
  const confirm = async (input: Inputs['auth']['confirmTotp']) => {
    renewed(await confirmTotp.mutate(input))
    setEnrollment(null)
    turned(true)
  }
  return (
    <Card title={t('Second factor')}>
      {user.second_factor ? (
        <div class="actions">
          <span class="status good">{t('On')}</span>
          <Ask {...ask('auth.renewRecoveryCodes', renewRecoveryCodes.mutate, {}, renewed)} />
          <Ask {...ask('auth.disableTotp', disableTotp.mutate, {}, () => turned(false))} />
        </div>
      ) : enrollment ? (
        <>
          <p>{t('Scan the code with an authenticator app, then type the six digits that it shows.')}</p>
          <Qr text={enrollment.otpauth_url} label={t('QR code for the authenticator app')} />
          <Copy text={enrollment.secret} label={t('Or type this secret')} />
          <Form fields={[field('code', { hint: '' })]} label={t('Turn on')} call={confirm} />
        </>
      ) : (
        <>
          <p class="quiet">
            {t('With it, logging in needs a code from your phone: a stolen password alone is worth nothing.')}
          </p>
          <Ask {...ask('auth.startTotp', startTotp.mutate, {}, setEnrollment)} />
        </>
      )}
    </Card>
  )
}

function Notifications() {
  const query = useQuery('notifications', () => client.users.notifications.query())
  const save = (email: Record<string, boolean>) => client.users.updateNotifications.mutate({ email })
  const fieldOf = (name: string) => field(name, { label: word(name), type: 'checkbox' })
  return (
    <Card title={t('E-mails')}>
      <Answered of={query}>
        {({ email }) => {
          const fields = Object.keys(email).map(fieldOf)
          return <Form fields={fields} values={email} label={t('Save')} call={save} done={saved} />
        }}
      </Answered>
    </Card>
  )
}

/** `Firefox · Linux` of what a browser calls itself; what is unknown stays as it is. */
function programIn(agent: string | null): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent ?? '')?.[1]
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent ?? '')?.[0]
  return browser && system ? `${browser} · ${system}` : (agent ?? '–')
}

function Sessions() {
  const list = useList<Session>(LISTS.sessions, client.auth.listSessions.query)
  const { endSession, endOtherSessions } = client.auth
  const agent = ({ agent }: Session) => <Theirs>{programIn(agent)}</Theirs>
  const action = ({ id, current }: Session) => {
    if (current) return <span class="status good">{t('This one')}</span>
    return <Ask {...ask('auth.endSession', endSession.mutate, { id }, list.reload)} />
  }
  const endOthers = <Ask {...ask('auth.endOtherSessions', endOtherSessions.mutate, {}, list.reload)} />
  return (
    <Card title={t('Sessions')} actions={endOthers}>
      <Rows list={list} cells={{ agent, action }} />
    </Card>
  )
}

function ApiKeys() {
  const list = useList<ApiKey>(LISTS.api_keys, client.auth.listApiKeys.query)
  const { createApiKey, deleteApiKey } = client.auth
  const show = ({ key }: { key: string }) => {
    reveal(t('Copy the key'), key)
    return list.reload()
  }
  const action = ({ id }: ApiKey) => (
    <Ask {...ask('auth.deleteApiKey', deleteApiKey.mutate, { id }, list.reload)} />
  )
  const add = <Ask {...ask('auth.createApiKey', createApiKey.mutate, {}, show)} />
  return (
    <Card title={t('API keys')} actions={add}>
      <Rows list={list} cells={{ action }} />
    </Card>
  )
}
