import { useState } from 'preact/hooks'
import { type Inputs, isRefusal } from '../../index.ts'
import { client, logIn } from '../client.ts'
import { Form } from '../parts/form.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Link } from '../router.tsx'
import { t } from '../text.ts'

export function LogIn() {
  const [needsCode, setNeedsCode] = useState(false)
  return (
    <Page title={t('Log in')}>
      <Card>
        <Form<Inputs['auth']['login']>
          fields={[
            { name: 'email', label: t('E-mail'), type: 'email', autocomplete: 'username' },
            { name: 'password', label: t('Password'), type: 'password', autocomplete: 'current-password' },
            ...(needsCode
              ? [
                  {
                    name: 'code' as const,
                    label: t('Code of your authenticator app'),
                    hint: t('Or one of your recovery codes.'),
                    autocomplete: 'one-time-code',
                  },
                ]
              : []),
          ]}
          submit={t('Log in')}
          onSubmit={async (input) => {
            try {
              logIn(await client.auth.login.mutate(input))
            } catch (error) {
              if (isRefusal(error, 'second_factor_required')) setNeedsCode(true)
              throw error
            }
          }}
        />
        <p class="quiet">
          {t('No account yet?')} <Link to="/register">{t('Register')}</Link>
        </p>
      </Card>
    </Page>
  )
}

export function Register() {
  return (
    <Page title={t('Register')} lead={t('Free of charge. Merchants sell; creators promote and earn.')}>
      <Card>
        <Form<Inputs['auth']['register']>
          fields={[
            {
              name: 'role',
              label: t('I am a'),
              type: 'select',
              options: [
                ['creator', t('Creator: I promote products')],
                ['merchant', t('Merchant: I have an online store')],
              ],
            },
            {
              name: 'display_name',
              label: t('Name'),
              hint: t('The name that others see.'),
              autocomplete: 'name',
            },
            { name: 'email', label: t('E-mail'), type: 'email', autocomplete: 'username' },
            {
              name: 'password',
              label: t('Password'),
              type: 'password',
              hint: t('At least 10 characters.'),
              autocomplete: 'new-password',
            },
          ]}
          submit={t('Register')}
          onSubmit={async (input) => logIn(await client.auth.register.mutate(input))}
        />
        <p class="quiet">
          {t('Have an account?')} <Link to="/login">{t('Log in')}</Link>
        </p>
      </Card>
    </Page>
  )
}
