import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import type { Inputs } from '../index.ts'
import {
  client,
  followChanges,
  forgetSession,
  reachable,
  report,
  session,
  stepUp,
  type User,
  useLive,
} from './client.ts'
import { news, tell } from './news.ts'
import { Ask } from './parts/ask.tsx'
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
      {user !== undefined && <Header user={user} path={path} />}
      {!isReachable && (
        <p class="bar" role="status">
          {t('The service does not answer. Trying again…')}
        </p>
      )}
      <main id="main">
        {user !== undefined && <Screen key={`${path} ${user?.id}`} user={user} path={path} />}
      </main>
      <footer>
        <a href="/docs/guides">{t('Guides')}</a>
        <a href="/docs">{t('API reference')}</a>
      </footer>
      <News user={user ?? null} />
      <StepUp />
    </>
  )
}

function Screen({ user, path }: { user: Viewer; path: string }) {
  const [bug] = useErrorBoundary(report)
  const first = navigationOf(user)[0]?.path ?? '/offers'
  const route = ROUTES.find((one) => match(one.path, path))
  const isForVisitors = user !== null && route?.roles?.includes('visitor')
  const back = isForVisitors ? new URLSearchParams(location.search).get('back') : null
  const onward = path === '/' || isForVisitors ? (back?.startsWith('/') ? back : first) : null
  useEffect(() => {
    if (onward) navigate(onward, { replace: true })
  }, [onward])
  const again = <a class="button main" href={location.href} children={t('Load it again')} />
  const broken = t('This page cannot be shown. The others work.')
  if (bug) return <Elsewhere title={t('Something went wrong')} text={broken} way={again} />
  if (onward) return null
  if (route && mayOpen(route, user)) return <route.screen params={match(route.path, path) ?? {}} />
  const button = (to: string, text: string) => <Link to={to} class="button main" children={text} />
  const start = button(first, t('Go to the start'))
  if (!route)
    return <Elsewhere title={t('Page not found')} text={t('There is no page at this address.')} way={start} />
  const others = t('This page is for other kinds of accounts than yours.')
  if (user) return <Elsewhere title={t('Not for this account')} text={others} way={start} />
  const logIn = button(`/login?back=${encodeURIComponent(path + location.search)}`, t('Log in'))
  return <Elsewhere title={t('Log in first')} text={t('This page belongs to an account.')} way={logIn} />
}

/** In place of a screen: why, and a way on. */
const Elsewhere = ({ title, text, way }: { title: string; text: string; way: ComponentChildren }) => (
  <Page title={title}>
    <Empty title={text}>{way}</Empty>
  </Page>
)

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
  const other = useLanguage() === 'ur' ? 'en' : 'ur'
  const theme = useTheme()
  return (
    <div class="choices">
      <button type="button" class="plain" lang={other} onClick={() => void setLanguage(other)}>
        {other === 'en' ? 'English' : 'اردو'}
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
  const logOut = async () => {
    await client.auth.logout.mutate()
    forgetSession()
    navigate('/offers')
  }
  return (
    <div class="actions">
      <Link to="/account" class="name">
        <bdi>{user.display_name}</bdi>
      </Link>
      <Ask class="plain" label={t('Log out')} onSubmit={logOut} />
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
