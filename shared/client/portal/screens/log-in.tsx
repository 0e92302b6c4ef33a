import { useState } from 'preact/hooks'
import type { Inputs } from '../../index.ts'
import { client, isRefused, logIn } from '../client.ts'
import { Form, field } from '../parts/form.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Link, navigate } from '../router.tsx'
import { t } from '../text.ts'

/** The ways in. */
export function VisitorLinks() {
  return (
    <div class="actions">
      <Link to="/login">{t('Log in')}</Link>
      <Link to="/register" class="button main">
        {t('Register')}
      </Link>
    </div>
  )
}

export function LogIn() {
  const [needsCode, setNeedsCode] = useState(false)
  const send = async (input: Inputs['auth']['login']) => {
    try {
      const answer = await client.auth.login.mutate(input)
      await logIn(answer)
      // Admins in production, until their second factor is set up.
      if (answer.second_factor_setup_required) navigate('/account')
    } catch (error) {
      if (isRefused(error, 'second_factor_required')) setNeedsCode(true)
      throw error
    }
  }
  const fields = ['email', 'password', ...(needsCode ? ['code'] : [])]
  return (
    <Page narrow title={t('Log in')}>
      <Card>
        <Form fields={fields} submit={t('Log in')} onSubmit={send} />
        <p>
          {t('No account yet?')} <Link to={`/register${location.search}`}>{t('Register')}</Link>
        </p>
        <p>
          <Link to="/forgot-password">{t('Forgot the password?')}</Link>
        </p>
      </Card>
    </Page>
  )
}

export function Register() {
  const roles = [
    ['creator', t('Creator: I promote products')],
    ['merchant', t('Merchant: I have an online store')],
  ] as const
  const password = field('password', { autocomplete: 'new-password', hint: t('At least 10 characters.') })
  const role = field('role', { label: t('I am a'), type: 'select', options: roles })
  const fields = [role, 'display_name', 'email', password]
  const send = (input: Inputs['auth']['register']) => client.auth.register.mutate(input).then(logIn)
  return (
    <Page narrow title={t('Register')} lead={t('Free of charge. Merchants sell; creators promote and earn.')}>
      <Card>
        <Form fields={fields} submit={t('Register')} onSubmit={send} />
        <p>
          {t('Have an account?')} <Link to={`/login${location.search}`}>{t('Log in')}</Link>
        </p>
      </Card>
    </Page>
  )
}

export function ForgotPassword() {
  const [isSent, setSent] = useState(false)
  const send = (input: Inputs['auth']['requestPasswordReset']) =>
    client.auth.requestPasswordReset.mutate(input).then(() => setSent(true))
  return (
    <Page narrow title={t('Forgot the password?')}>
      <Card>
        {isSent ? (
          <p role="status">
            {t('If there is an account with this e-mail, a link is on its way. It is valid for one hour.')}
          </p>
        ) : (
          <Form fields={['email']} submit={t('Send a link')} onSubmit={send} />
        )}
        <Link to="/login">{t('Log in')}</Link>
      </Card>
    </Page>
  )
}
