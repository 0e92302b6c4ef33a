import { render } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import {
  client,
  followChanges,
  forgetSession,
  reachable,
  report,
  session,
  startSession,
  stepUp,
  type User,
  useLive,
} from './client.ts'
import { Ask, Dialog, Form } from './parts/form.tsx'
import { Empty, LinkButton, Page } from './parts/page.tsx'
import { ROUTES, type ScreenRoute } from './routes.tsx'
import { VisitorLinks } from './screens/visitors.tsx'
import { match, navigate, news, route, setTheme, tell, theme } from './state.ts'
import { key, language, money, setLanguage, startLanguage, t } from './text.ts'

type Viewer = User | null

/** What the marketplace is called; the service writes it into the page. */
const NAME = document.title || key('Affiliate marketplace')

const mayOpen = ({ roles }: ScreenRoute, user: Viewer) => !roles || roles.includes(user?.role ?? 'visitor')
const navigationOf = (user: Viewer) => ROUTES.filter((one) => one.nav && mayOpen(one, user))

/** Everything around the screens. */
function Shell() {
  language.use()
  const user = session.use()
  const { path } = route.use()
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
  const found = ROUTES.find((one) => match(one.path, path))
  const isForVisitors = user !== null && found?.roles?.includes('visitor')
  const back = isForVisitors ? new URLSearchParams(location.search).get('back') : null
  const onward = path === '/' || isForVisitors ? (back?.startsWith('/') ? back : first) : null
  useEffect(() => {
    if (onward) navigate(onward, { replace: true })
  }, [onward])
  const broken = t('This page cannot be shown. The others work.')
  if (bug) return elsewhere(t('Something went wrong'), broken, location.href, t('Load it again'))
  if (onward) return null
  if (found && mayOpen(found, user)) return <found.screen params={match(found.path, path) ?? {}} />
  const start = `/app${first}`
  if (!found)
    return elsewhere(t('Page not found'), t('There is no page at this address.'), start, t('Go to the start'))
  const others = t('This page is for other kinds of accounts than yours.')
  if (user) return elsewhere(t('Not for this account'), others, start, t('Go to the start'))
  const logIn = `/app/login?back=${encodeURIComponent(path + location.search)}`
  return elsewhere(t('Log in first'), t('This page belongs to an account.'), logIn, t('Log in'))
}

/** In place of a screen: why, and a way on. */
const elsewhere = (title: string, text: string, href: string, way: string) => (
  <Page title={title}>
    <Empty title={text}>
      <LinkButton href={href}>{way}</LinkButton>
    </Empty>
  </Page>
)

function Header({ user, path }: { user: Viewer; path: string }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => setOpen(false), [path])
  const currentOf = (to: string) => (path === to || path.startsWith(`${to}/`) ? 'page' : undefined)
  return (
    <header class="top">
      <a href="/app/" class="brand">
        {t(NAME)}
      </a>
      <button type="button" class="plain menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t('Menu')}
      </button>
      <div class={isOpen ? 'top-parts open' : 'top-parts'}>
        <nav aria-label={t('Screens')}>
          {navigationOf(user).map(({ path: to, nav = '' }) => (
            <a key={to} href={`/app${to}`} aria-current={currentOf(to)}>
              {t(nav)}
            </a>
          ))}
        </nav>
        <Choices />
        {user ? <Account user={user} /> : <VisitorLinks />}
      </div>
    </header>
  )
}

function Choices() {
  const other = language.use() === 'ur' ? 'en' : 'ur'
  const themes = { auto: t('Automatic'), light: t('Light'), dark: t('Dark') }
  const choose = ({ currentTarget }: { currentTarget: HTMLSelectElement }) => setTheme(currentTarget.value)
  return (
    <div class="choices">
      <button type="button" class="plain" lang={other} onClick={() => void setLanguage(other)}>
        {other === 'en' ? 'English' : 'اردو'}
      </button>
      <select aria-label={t('Colors')} value={theme.use()} onChange={choose}>
        {Object.entries(themes).map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
    </div>
  )
}

function Account({ user }: { user: User }) {
  const left = () => {
    forgetSession()
    navigate('/offers')
  }
  return (
    <div class="actions">
      <a href="/app/account" class="name">
        <bdi>{user.display_name}</bdi>
      </a>
      <Ask class="plain" label={t('Log out')} call={client.auth.logout.mutate} done={left} />
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
  const fields = ['password', ...(session.use()?.second_factor ? ['code'] : [])]
  if (!waiting) return null
  return (
    <Dialog title={t('Confirm that it is you')} onClose={waiting.cancel}>
      <Form fields={fields} label={t('Confirm')} call={client.auth.stepUp.mutate} done={waiting.confirm} />
    </Dialog>
  )
}

void startSession()
await startLanguage()
// The placeholder of the page has been there since its first byte.
document.body.replaceChildren()
render(<Shell />, document.body)
