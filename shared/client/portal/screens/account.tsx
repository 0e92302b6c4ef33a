import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, session, useList, useMutation, useQuery } from '../client.ts'
import { tell } from '../news.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form } from '../parts/form.tsx'
import { Answered, Card, Empty, Failed, Page } from '../parts/page.tsx'
import { Qr } from '../parts/pictures.tsx'
import { ListTable } from '../parts/table.tsx'
import { Copy, Facts, Status, Theirs, When } from '../parts/values.tsx'
import { t } from '../text.ts'
import { EVENT_WORDS } from '../words.ts'

/** What an account sets about itself. */
export function AccountSettings() {
  const user = session.use()
  if (!user) return null
  return (
    <Page title={t('Account')}>
      {!user.email_verified_at && <Unverified />}
      <div class="columns">
        <Profile />
        <Password />
        <SecondFactor />
        {user.role !== 'admin' && <Notifications />}
      </div>
      <Sessions />
      {user.role !== 'admin' && <ApiKeys />}
    </Page>
  )
}

function Unverified() {
  const { run, busy, error } = useMutation(async () => {
    await client.auth.resendVerification.mutate()
    tell(t('The e-mail is on its way.'))
  })
  return (
    <>
      <div class="notice warn">
        {t('Your e-mail address is not verified. Open the link in the e-mail that you got.')}{' '}
        <button type="button" class="plain" aria-disabled={busy} onClick={() => void run(undefined)}>
          {t('Send a new one')}
        </button>
      </div>
      <Failed error={error} />
    </>
  )
}

function Profile() {
  const user = session.use()
  if (!user) return null
  return (
    <Card title={t('Profile')}>
      <Facts
        items={[
          [t('E-mail'), <Theirs key="email">{user.email}</Theirs>],
          [t('Role'), <Status key="role" value={user.role} />],
          [t('Since'), <When key="since" at={user.created_at} style="date" />],
        ]}
      />
      <Form<{ display_name: string }>
        fields={[
          {
            name: 'display_name',
            label: t('Name'),
            value: user.display_name,
            hint: t('The name that others see.'),
            autocomplete: 'name',
          },
        ]}
        submit={t('Save')}
        onSubmit={async (input) => {
          session.set(await client.users.updateMe.mutate(input))
          tell(t('Saved.'))
        }}
      />
    </Card>
  )
}

function Password() {
  const [changes, setChanges] = useState(0)
  return (
    <Card title={t('Password')}>
      <Form<Inputs['auth']['changePassword']>
        // Empty again after a change.
        key={changes}
        fields={[
          {
            name: 'current_password',
            label: t('Current password'),
            type: 'password',
            autocomplete: 'current-password',
          },
          {
            name: 'new_password',
            label: t('New password'),
            type: 'password',
            hint: t('At least 10 characters. Every other session ends.'),
            autocomplete: 'new-password',
          },
        ]}
        submit={t('Change the password')}
        onSubmit={async (input) => {
          await client.auth.changePassword.mutate(input)
          setChanges(changes + 1)
          tell(t('The password is changed.'))
        }}
      />
    </Card>
  )
}

/** Sets the second factor up, renews its recovery codes, and turns it off. */
function SecondFactor() {
  const user = session.use()
  const [codes, setCodes] = useState<string[] | null>(null)
  const [enrollment, setEnrollment] = useState<Outputs['auth']['startTotp'] | null>(null)
  const [asks, setAsks] = useState<'renew' | 'off' | null>(null)
  const start = useMutation(async () => setEnrollment(await client.auth.startTotp.mutate()))
  const codeField = { name: 'code' as const, label: t('Code of the app'), autocomplete: 'one-time-code' }
  if (!user) return null
  const turned = (second_factor: boolean) => session.set({ ...user, second_factor })
  return (
    <Card title={t('Second factor')}>
      {user.second_factor ? (
        <>
          <p>
            <span class="status good">{t('On')}</span>
          </p>
          <div class="actions">
            <button type="button" onClick={() => setAsks('renew')}>
              {t('New recovery codes')}
            </button>
            <button type="button" class="danger" onClick={() => setAsks('off')}>
              {t('Turn off')}
            </button>
          </div>
        </>
      ) : enrollment ? (
        <>
          <p>{t('Scan the code with an authenticator app, then type the six digits that it shows.')}</p>
          <Qr text={enrollment.otpauth_url} label={t('QR code for the authenticator app')} />
          <Copy text={enrollment.secret} label={t('Or type this secret')} />
          <Form
            fields={[codeField]}
            submit={t('Turn on')}
            onSubmit={async (input: { code: string }) => {
              setCodes((await client.auth.confirmTotp.mutate(input)).recovery_codes)
              setEnrollment(null)
              turned(true)
            }}
          />
        </>
      ) : (
        <>
          <p class="quiet">
            {t('With it, logging in needs a code from your phone: a stolen password alone is worth nothing.')}
          </p>
          <Failed error={start.error} />
          <button type="button" class="main" onClick={() => void start.run(undefined)}>
            {t('Set up')}
          </button>
        </>
      )}
      {asks && (
        <Dialog
          title={asks === 'renew' ? t('New recovery codes') : t('Turn the second factor off?')}
          onClose={() => setAsks(null)}
        >
          <Form
            fields={[codeField]}
            submit={asks === 'renew' ? t('Replace them') : t('Turn off')}
            danger={asks === 'off'}
            onSubmit={async (input: { code: string }) => {
              if (asks === 'renew')
                setCodes((await client.auth.renewRecoveryCodes.mutate(input)).recovery_codes)
              else await client.auth.disableTotp.mutate(input).then(() => turned(false))
              setAsks(null)
            }}
          />
        </Dialog>
      )}
      {codes && (
        <Dialog title={t('Keep these codes')} onClose={() => setCodes(null)}>
          <p>{t('Each logs you in once without the app. They are shown only now.')}</p>
          <ul class="codes" dir="ltr">
            {codes.map((code) => (
              <li key={code}>{code}</li>
            ))}
          </ul>
          <Copy text={codes.join(' ')} label={t('Recovery codes')} />
        </Dialog>
      )}
    </Card>
  )
}

function Notifications() {
  const query = useQuery('notifications', () => client.users.notifications.query())
  const change = useMutation(async (email: Record<string, boolean>) => {
    const data = await client.users.updateNotifications.mutate({ email })
    query.update(() => data)
  })
  return (
    <Card title={t('E-mails')}>
      <Failed error={change.error} />
      <Answered of={query}>
        {({ email }) => (
          <div class="form">
            {Object.entries(email).map(([event, isOn]) => (
              <label key={event} class="choice">
                <input
                  type="checkbox"
                  checked={isOn}
                  onChange={({ currentTarget }) => void change.run({ [event]: currentTarget.checked })}
                />
                {t(EVENT_WORDS[event] ?? event)}
              </label>
            ))}
          </div>
        )}
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
  const end = useMutation(async (id: string | null) => {
    await (id ? client.auth.endSession.mutate({ id }) : client.auth.endOtherSessions.mutate())
    await list.reload()
  })
  return (
    <Card
      title={t('Sessions')}
      actions={
        <button type="button" onClick={() => void end.run(null)}>
          {t('End all others')}
        </button>
      }
    >
      <Failed error={end.error} />
      <ListTable
        label={t('Sessions')}
        list={list}
        empty={null}
        columns={[
          { head: t('Program'), cell: ({ agent }) => <Theirs>{programIn(agent)}</Theirs> },
          { head: t('Network'), cell: ({ address_prefix }) => <bdi dir="ltr">{address_prefix ?? '–'}</bdi> },
          { head: t('Logged in'), cell: ({ created_at }) => <When at={created_at} /> },
          {
            head: t('Action'),
            cell: ({ id, current }) =>
              current ? (
                <span class="status good">{t('This one')}</span>
              ) : (
                <button type="button" class="plain" onClick={() => void end.run(id)}>
                  {t('End')}
                </button>
              ),
          },
        ]}
      />
    </Card>
  )
}

function ApiKeys() {
  const list = useList('api-keys', (cursor) => client.auth.listApiKeys.query(cursor))
  const [asks, setAsks] = useState(false)
  const [made, setMade] = useState<string | null>(null)
  const remove = useMutation(async (id: string) => {
    await client.auth.deleteApiKey.mutate({ id })
    await list.reload()
  })
  return (
    <Card
      title={t('API keys')}
      actions={
        <button type="button" onClick={() => setAsks(true)}>
          {t('New key')}
        </button>
      }
    >
      <Failed error={remove.error} />
      <ListTable
        label={t('API keys')}
        list={list}
        empty={<Empty title={t('No keys.')}>{t('Programs that call the API in your name need one.')}</Empty>}
        columns={[
          { head: t('Name'), cell: ({ name }) => <Theirs>{name}</Theirs> },
          { head: t('May'), cell: ({ scope }) => <Status value={scope} /> },
          { head: t('Ends with'), cell: ({ last4 }) => <bdi>{last4}</bdi> },
          { head: t('Last used'), cell: ({ last_used_at: at }) => (at ? <When at={at} /> : t('Never')) },
          {
            head: t('Action'),
            cell: ({ id }) => (
              <button type="button" class="plain" onClick={() => void remove.run(id)}>
                {t('Delete')}
              </button>
            ),
          },
        ]}
      />
      {asks && (
        <Dialog title={t('New key')} onClose={() => setAsks(false)}>
          <Form<Inputs['auth']['createApiKey']>
            fields={[
              { name: 'name', label: t('Name'), hint: t('What the key is for.') },
              {
                name: 'scope',
                label: t('May'),
                type: 'select',
                options: [
                  ['read', t('Read')],
                  ['write', t('Read and write')],
                ],
              },
              { name: 'expires_in_days', label: t('Days until it expires'), type: 'number', optional: true },
            ]}
            submit={t('Make the key')}
            onSubmit={async (input) => {
              setMade((await client.auth.createApiKey.mutate(input)).key)
              setAsks(false)
              await list.reload()
            }}
          />
        </Dialog>
      )}
      {made && (
        <Dialog title={t('Copy the key')} onClose={() => setMade(null)}>
          <p>{t('It is shown only now.')}</p>
          <Copy text={made} label={t('API key')} />
        </Dialog>
      )}
    </Card>
  )
}
