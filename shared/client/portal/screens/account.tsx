import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, session, type User, useList, useQuery } from '../client.ts'
import { tell } from '../news.ts'
import { Ask } from '../parts/ask.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Form, field, optionsOf } from '../parts/form.tsx'
import { Rows } from '../parts/list.tsx'
import { Answered, Card, Empty, Page } from '../parts/page.tsx'
import { Qr } from '../parts/pictures.tsx'
import { Copy, Facts, Theirs } from '../parts/values.tsx'
import { t } from '../text.ts'
import { word } from '../words.ts'

type Code = Inputs['auth']['confirmTotp']

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
    </Page>
  )
}

function Unverified() {
  const send = () => client.auth.resendVerification.mutate().then(() => tell(t('The e-mail is on its way.')))
  return (
    <div class="notice warn">
      {t('Your e-mail address is not verified. Open the link in the e-mail that you got.')}{' '}
      <Ask class="plain" label={t('Send a new one')} onSubmit={send} />
    </div>
  )
}

function Profile({ user }: { user: User }) {
  const save = async (input: { display_name: string }) => {
    session.set(await client.users.updateMe.mutate(input))
    tell(t('Saved.'))
  }
  return (
    <Card title={t('Profile')}>
      <Facts of={user} items={['email', 'role', 'created_at']} />
      <Form fields={['display_name']} values={user} submit={t('Save')} onSubmit={save} />
    </Card>
  )
}

function Password() {
  const [changes, setChanges] = useState(0)
  const change = async (input: Inputs['auth']['changePassword']) => {
    await client.auth.changePassword.mutate(input)
    setChanges(changes + 1)
    tell(t('The password is changed, and every other session has ended.'))
  }
  const fields = ['current_password', 'new_password']
  // Empty again after a change.
  return (
    <Card title={t('Password')}>
      <Form key={changes} fields={fields} submit={t('Change the password')} onSubmit={change} />
    </Card>
  )
}

/** Sets the second factor up, renews its recovery codes, and turns it off. */
function SecondFactor({ user }: { user: User }) {
  const [codes, setCodes] = useState<string[] | null>(null)
  const [enrollment, setEnrollment] = useState<Outputs['auth']['startTotp'] | null>(null)
  const turned = (second_factor: boolean) => session.set({ ...user, second_factor })
  const confirm = async (input: Code) => {
    setCodes((await client.auth.confirmTotp.mutate(input)).recovery_codes)
    setEnrollment(null)
    turned(true)
  }
  const renew = async (input: Code) =>
    setCodes((await client.auth.renewRecoveryCodes.mutate(input)).recovery_codes)
  const turnOff = (input: Code) => client.auth.disableTotp.mutate(input).then(() => turned(false))
  const start = async () => setEnrollment(await client.auth.startTotp.mutate())
  return (
    <Card title={t('Second factor')}>
      {user.second_factor ? (
        <div class="actions">
          <span class="status good">{t('On')}</span>
          <Ask label={t('New recovery codes')} fields={['code']} onSubmit={renew} />
          <Ask label={t('Turn off')} fields={['code']} danger onSubmit={turnOff} />
        </div>
      ) : enrollment ? (
        <>
          <p>{t('Scan the code with an authenticator app, then type the six digits that it shows.')}</p>
          <Qr text={enrollment.otpauth_url} label={t('QR code for the authenticator app')} />
          <Copy text={enrollment.secret} label={t('Or type this secret')} />
          <Form fields={[field('code', { hint: '' })]} submit={t('Turn on')} onSubmit={confirm} />
        </>
      ) : (
        <>
          <p class="quiet">
            {t('With it, logging in needs a code from your phone: a stolen password alone is worth nothing.')}
          </p>
          <Ask class="main" label={t('Set up')} onSubmit={start} />
        </>
      )}
      {codes && (
        <Dialog title={t('Keep these codes')} onClose={() => setCodes(null)}>
          <p>{t('Each logs you in once without the app. They are shown only now.')}</p>
          <pre dir="ltr">{codes.join('\n')}</pre>
          <Copy text={codes.join(' ')} label={t('Recovery codes')} />
        </Dialog>
      )}
    </Card>
  )
}

function Notifications() {
  const query = useQuery('notifications', () => client.users.notifications.query())
  const save = async (email: Record<string, boolean>) => {
    await client.users.updateNotifications.mutate({ email })
    tell(t('Saved.'))
  }
  return (
    <Card title={t('E-mails')}>
      <Answered of={query}>
        {({ email }) => {
          const fields = Object.keys(email).map((name) =>
            field(name, { label: word(name), type: 'checkbox' }),
          )
          return <Form fields={fields} values={email} submit={t('Save')} onSubmit={save} />
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
  const list = useList('sessions', (cursor) => client.auth.listSessions.query(cursor))
  const endOthers = () => client.auth.endOtherSessions.mutate().then(list.reload)
  const end = (id: string) => () => client.auth.endSession.mutate({ id }).then(list.reload)
  const action = ({ id, current }: { id: string; current: boolean }) => {
    if (current) return <span class="status good">{t('This one')}</span>
    return <Ask class="plain" label={t('End')} onSubmit={end(id)} />
  }
  return (
    <Card title={t('Sessions')} actions={<Ask label={t('End all others')} onSubmit={endOthers} />}>
      <Rows
        label={t('Sessions')}
        list={list}
        columns={[
          { head: t('Program'), cell: ({ agent }) => <Theirs>{programIn(agent)}</Theirs> },
          'address_prefix',
          'created_at',
          { head: t('Action'), cell: action },
        ]}
      />
    </Card>
  )
}

function ApiKeys() {
  const list = useList('api-keys', (cursor) => client.auth.listApiKeys.query(cursor))
  const [made, setMade] = useState<string | null>(null)
  const make = async (input: Inputs['auth']['createApiKey']) => {
    setMade((await client.auth.createApiKey.mutate(input)).key)
    await list.reload()
  }
  const remove = (id: string) => () => client.auth.deleteApiKey.mutate({ id }).then(list.reload)
  const action = ({ id }: { id: string }) => <Ask class="plain" label={t('Delete')} onSubmit={remove(id)} />
  const scope = field('scope', { type: 'select', options: optionsOf(['read', 'write']) })
  const fields = ['name', scope, 'expires_in_days?']
  return (
    <Card title={t('API keys')} actions={<Ask label={t('New key')} fields={fields} onSubmit={make} />}>
      <Rows
        label={t('API keys')}
        list={list}
        empty={<Empty title={t('No keys.')}>{t('Programs that call the API in your name need one.')}</Empty>}
        columns={['name', 'scope', 'last4', 'last_used_at', { head: t('Action'), cell: action }]}
      />
      {made && (
        <Dialog title={t('Copy the key')} onClose={() => setMade(null)}>
          <p>{t('It is shown only now.')}</p>
          <Copy text={made} label={t('API key')} />
        </Dialog>
      )}
    </Card>
  )
}
