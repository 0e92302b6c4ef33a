import { useState } from 'preact/hooks'
import type { Inputs, Outputs } from '../../index.ts'
import { client, isRefused, logIn, session, useQuery, useRole } from '../client.ts'
import { Form, field } from '../parts/form.tsx'
import { ListPage, useList } from '../parts/list.tsx'
import { Answered, Card, Facts, LinkButton, Page, Theirs } from '../parts/page.tsx'
import { navigate } from '../state.ts'
import { CATALOGUE, STANDING, t } from '../text.ts'

type Offer = Outputs['offers']['get']

/** The public catalogue. */
export function Offers() {
  const { data } = useQuery('categories', () => client.offers.categories.query())
  const inUse = (name: 'category' | 'niche') => ['', ...new Set(data?.items.map((item) => item[name]))]
  const filters = { ...CATALOGUE.filters, category: inUse('category'), niche: inUse('niche') }
  const list = useList<Offer>({ ...CATALOGUE, filters }, client.offers.list.query)
  const offer = ({ id, title, merchant }: Offer) => (
    <div>
      <Theirs href={`/app/offers/${id}`}>{title}</Theirs>
      <p class="quiet">
        <Theirs>{merchant.display_name}</Theirs>
      </p>
    </div>
  )
  return (
    <ListPage list={list} cells={{ offer }}>
      {session.use() === null && <Welcome />}
    </ListPage>
  )
}

const Welcome = () => (
  <Card>
    <p>
      {t(
        'Creators share links to products of Pakistan’s online stores, and earn a commission on each sale that follows. Merchants offer the commission, choose the creators, and pay once the order is paid.',
      )}
    </p>
    <VisitorLinks />
  </Card>
)

const TERMS = ['commission_rate', 'paid_rate_90d', 'attribution_window_days']

export function OfferPage({ params: { id = '' } }: { params: Record<string, string> }) {
  const query = useQuery(`offer ${id}`, () => client.offers.get.query({ id }))
  const role = useRole()
  return (
    <Page title={query.data?.title ?? t('Offer')} lead={<Theirs>{query.data?.merchant.display_name}</Theirs>}>
      <Answered of={query}>
        {({ description, ...offer }) => (
          <Card>
            {description && <p class="theirs">{description}</p>}
            <Facts of={offer} items={[...TERMS, 'category', 'niche', 'product_url', 'image_url']} />
          </Card>
        )}
      </Answered>
      {role === 'creator' && <Apply id={id} />}
      {role === undefined && (
        <LinkButton href={`/app/register?back=/offers/${id}`}>{t('Register to promote it')}</LinkButton>
      )}
    </Page>
  )
}

function Apply({ id }: { id: string }) {
  const mine = useQuery('applications', () => client.applications.list.query({ limit: 100 }))
  const { mutate } = client.applications.apply
  const fields = ['message?', 'promotion_url?']
  return (
    <Card title={t('Promote this offer')}>
      <Answered of={mine}>
        {({ items }) => {
          const { status = 'none', decision_reason } = items.find(({ offer_id }) => offer_id === id) ?? {}
          return (
            <>
              {status !== 'none' && <p>{t(STANDING[status])}</p>}
              {decision_reason && <Theirs>{decision_reason}</Theirs>}
              {status === 'approved' && <a href={`/app/links?offer_id=${id}`}>{t('Your link')}</a>}
              {status === 'pending' && <a href="/app/applications">{t('Your applications')}</a>}
              {status !== 'approved' && status !== 'pending' && (
                <Form fields={fields} label={t('Apply')} call={mutate} given={{ id }} done={mine.reload} />
              )}
            </>
          )
        }}
      </Answered>
    </Card>
  )
}

/** The ways in. */
export const VisitorLinks = () => (
  <div class="actions">
    <a href="/app/login">{t('Log in')}</a>
    <LinkButton href="/app/register">{t('Register')}</LinkButton>
  </div>
)

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
      <Form fields={fields} label={t('Log in')} call={send} />
      <p>
        {t('No account yet?')} <a href={`/app/register${location.search}`}>{t('Register')}</a>
      </p>
      <a href="/app/forgot-password">{t('Forgot the password?')}</a>
    </Page>
  )
}

export function Register() {
  const password = field('password', { autocomplete: 'new-password', hint: t('At least 10 characters.') })
  const fields = [field('role', { label: t('I am a') }), 'display_name', 'email', password]
  return (
    <Page narrow title={t('Register')} lead={t('Free of charge. Merchants sell; creators promote and earn.')}>
      <Form fields={fields} label={t('Register')} call={client.auth.register.mutate} done={logIn} />
      <p>
        {t('Have an account?')} <a href={`/app/login${location.search}`}>{t('Log in')}</a>
      </p>
    </Page>
  )
}

export function ForgotPassword() {
  const [isSent, setSent] = useState(false)
  const { mutate } = client.auth.requestPasswordReset
  return (
    <Page narrow title={t('Forgot the password?')}>
      {isSent ? (
        <p role="status">
          {t('If there is an account with this e-mail, a link is on its way. It is valid for one hour.')}
        </p>
      ) : (
        <Form fields={['email']} label={t('Send a link')} call={mutate} done={() => setSent(true)} />
      )}
      <a href="/app/login">{t('Log in')}</a>
    </Page>
  )
}
