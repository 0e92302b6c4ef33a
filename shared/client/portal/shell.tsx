import { useEffect, useState } from 'preact/hooks'
import type { Inputs } from '../index.ts'
import {
  client,
  followChanges,
  forgetSession,
  reachable,
  session,
  stepUp,
  type User,
  useLive,
  useMutation,
} from './client.ts'
import { news, tell } from './news.ts'
import { Dialog } from './parts/dialog.tsx'
import { Form } from './parts/form.tsx'
import { Empty, Page } from './parts/page.tsx'
import { Link, match, navigate, useRoute } from './router.tsx'
import { ROUTES, type ScreenRoute } from './routes.tsx'
import { VisitorLinks } from './screens/log-in.tsx'
import { key, money, setLanguage, t, useLanguage } from './text.ts'
import { setTheme, THEMES, useTheme } from './theme.ts'

type Viewer = User | null

/** What the marketplace is called; the service writes it into the page. */
const NAME = document.title || key('Affiliate marketplace')

const mayOpen = ({ roles }: ScreenRoute, user: Viewer) => !roles || roles.includes(user?.role ?? 'visitor')
const navigationOf = (user: Viewer) => ROUTES.filter((route) => route.nav && mayOpen(route, user))

/** Everything around the screens. */
export function Shell() {
  useLanguage()
  const user = session.use()
  const { path } = useRoute()
  const isReachable = reachable.use()
  return (
    <>
      <a class="skip" href="#main">
        {t('Skip to the content')}
      </a>
      <Header user={user} path={path} />
      {!isReachable && (
        <p class="bar" role="status">
          {t('The service does not answer. Trying again…')}
        </p>
      )}
      <main id="main">
        <Screen key={`${path} ${user?.id}`} user={user} path={path} />
      </main>
      <footer>
        <a href="/docs/guides">{t('Guides')}</a>
        <a href="/docs">{t('API reference')}</a>
      </footer>
      <News user={user} />
      <StepUp />
    </>
  )
}

function Screen({ user, path }: { user: Viewer; path: string }) {
  const first = navigationOf(user)[0]?.path ?? '/offers'
  const route = ROUTES.find((one) => match(one.path, path))
  const isForVisitors = user !== null && route?.roles?.includes('visitor')
  const back = isForVisitors ? new URLSearchParams(location.search).get('back') : null
  const onward = path === '/' || isForVisitors ? (back?.startsWith('/') ? back : first) : null
  useEffect(() => {
    if (onward) navigate(onward, { replace: true })
  }, [onward])
  if (onward) return null
  if (route && mayOpen(route, user)) return <route.screen params={match(route.path, path) ?? {}} />
  const start = { to: first, link: t('Go to the start') }
  if (!route)
    return <Elsewhere title={t('Page not found')} text={t('There is no page at this address.')} {...start} />
  const others = t('This page is for other kinds of accounts than yours.')
  if (user) return <Elsewhere title={t('Not for this account')} text={others} {...start} />
  const here = encodeURIComponent(path + location.search)
  const logIn = { to: `/login?back=${here}`, link: t('Log in') }
  return <Elsewhere title={t('Log in first')} text={t('This page belongs to an account.')} {...logIn} />
}

/** In place of a screen: why, and a way on. */
function Elsewhere({ title, text, to, link }: Record<'title' | 'text' | 'to' | 'link', string>) {
  return (
    <Page title={title}>
      <Empty title={text}>
        <Link to={to} class="button main">
          {link}
        </Link>
      </Empty>
    </Page>
  )
}

function Header({ user, path }: { user: Viewer; path: string }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [path])
  return (
    <header class="top">
      <Link to="/" class="brand">
        {t(NAME)}
      </Link>
      <button type="button" class="plain menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t('Menu')}
      </button>
      <div class={isOpen ? 'top-parts open' : 'top-parts'}>
        <nav aria-label={t('Screens')}>
          {navigationOf(user).map(({ path: to, nav = '' }) => (
            <Link key={to} to={to} current={path === to || path.startsWith(`${to}/`)}>
              {t(nav)}
            </Link>
          ))}
        </nav>
        <Choices />
        {user ? <Account user={user} /> : <VisitorLinks />}
      </div>
    </header>
  )
}

function Choices() {
  const language = useLanguage()
  const theme = useTheme()
  return (
    <div class="choices">
      <button
        type="button"
        class="plain"
        lang={language === 'ur' ? 'en' : 'ur'}
        onClick={() => void setLanguage(language === 'ur' ? 'en' : 'ur')}
      >
        {language === 'ur' ? 'English' : 'اردو'}
      </button>
      <select
        aria-label={t('Colors')}
        value={theme}
        onChange={({ currentTarget }) => setTheme(currentTarget.value as typeof theme)}
      >
        {Object.entries(THEMES).map(([name, label]) => (
          <option key={name} value={name}>
            {t(label)}
          </option>
        ))}
      </select>
    </div>
  )
}

function Account({ user }: { user: User }) {
  const logOut = useMutation(async () => {
    await client.auth.logout.mutate()
    forgetSession()
    navigate('/offers')
  })
  return (
    <div class="actions">
      <Link to="/account" class="name">
        <bdi>{user.display_name}</bdi>
      </Link>
      <button type="button" class="plain" onClick={() => void logOut.run(undefined)}>
        {t('Log out')}
      </button>
    </div>
  )
}

function News({ user }: { user: Viewer }) {
  const hasChanges = user !== null && user.role !== 'admin'
  useEffect(() => (hasChanges ? followChanges() : undefined), [hasChanges, user?.id])
  useLive('sale', ({ sale: { order_name, order_id, acceptance_status, commission } }) => {
    const values = { order: order_name ?? order_id, commission: money(commission) }
    if (acceptance_status === 'accepted')
      tell(t('Order {order}: sale accepted, commission {commission}.', values))
    else tell(t('Order {order}: sale rejected.', values))
  })
  useLive('payout', ({ change, payout }) => {
    if (change === 'paid') tell(t('Payout paid: {amount}.', { amount: money(payout.amount) }))
  })
  return (
    <div class="news" aria-live="polite">
      {news.use().map(({ id, text }) => (
        <p key={id}>
          <bdi>{text}</bdi>
        </p>
      ))}
    </div>
  )
}

/** Asks for the password again where a call needs it. */
function StepUp() {
  const waiting = stepUp.use()
  const user = session.use()
  if (!waiting) return null
  return (
    <Dialog title={t('Confirm that it is you')} onClose={waiting.cancel}>
      <Form
        fields={['password', ...(user?.second_factor ? ['code'] : [])]}
        submit={t('Confirm')}
        onSubmit={(input: Inputs['auth']['stepUp']) => client.auth.stepUp.mutate(input).then(waiting.confirm)}
      />
    </Dialog>
  )
}
