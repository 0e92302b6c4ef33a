import type { FunctionComponent } from 'preact'
import { type Role, SCREENS, useQuery } from './client.ts'
import { Answered } from './parts/page.tsx'
import type * as Members from './screens/members.ts'
import { ForgotPassword, LogIn, OfferPage, Offers, Register } from './screens/visitors.tsx'
import { key } from './text.ts'

/** A screen in a script that visitors need not load. */
const member =
  (name: keyof typeof Members): ScreenRoute['screen'] =>
  (props) => {
    const script = useQuery(SCREENS, () => import('./screens/members.ts'))
    return <Answered of={script}>{({ [name]: Screen }) => <Screen {...props} />}</Answered>
  }

export interface ScreenRoute {
  /** Below `/app`; a part such as `:id` is passed to the screen. */
  path: string
  screen: FunctionComponent<{ params: Record<string, string> }>
  /** Who may see it; everyone unless given. `visitor`: those who are not logged in. */
  roles?: readonly (Role | 'visitor')[]
  /** Its name in the navigation; without one it is not in it. */
  nav?: string
}

const BOTH = ['merchant', 'creator'] as const

/** Every screen, in the order of the navigation. `/` leads to the first one that the role sees in the navigation. */
export const ROUTES: readonly ScreenRoute[] = [
  { path: '/dashboard', screen: member('Dashboard'), roles: BOTH, nav: key('Dashboard') },
  { path: '/sales', screen: member('Sales'), roles: BOTH, nav: key('Sales') },
  { path: '/sales/:id', screen: member('Receipt'), roles: BOTH },
  { path: '/pending-orders', screen: member('PendingOrders'), roles: BOTH, nav: key('Pending orders') },
  { path: '/my-offers', screen: member('MyOffers'), roles: ['merchant'], nav: key('My offers') },
  { path: '/my-offers/new', screen: member('NewOffer'), roles: ['merchant'] },
  { path: '/my-offers/:id', screen: member('EditOffer'), roles: ['merchant'] },
  { path: '/applications', screen: member('Applications'), roles: BOTH, nav: key('Applications') },
  { path: '/links', screen: member('Links'), roles: BOTH, nav: key('Links') },
  { path: '/stores', screen: member('Stores'), roles: ['merchant'], nav: key('Stores') },
  { path: '/stores/new', screen: member('ConnectStore'), roles: ['merchant'] },
  { path: '/billing', screen: member('Billing'), roles: ['merchant'], nav: key('Billing') },
  { path: '/payouts', screen: member('Payouts'), roles: BOTH, nav: key('Payouts') },
  { path: '/exports', screen: member('Exports'), roles: BOTH, nav: key('Exports') },
  { path: '/webhooks', screen: member('Endpoints'), roles: BOTH, nav: key('Webhooks') },
  { path: '/webhooks/:id', screen: member('Deliveries'), roles: BOTH },
  { path: '/offers', screen: Offers, nav: key('Offers') },
  { path: '/offers/:id', screen: OfferPage },
  { path: '/flags', screen: member('Flags'), roles: ['admin'], nav: key('Flags') },
  { path: '/users', screen: member('Users'), roles: ['admin'], nav: key('Users') },
  { path: '/account', screen: member('AccountSettings'), roles: ['merchant', 'creator', 'admin'] },
  { path: '/login', screen: LogIn, roles: ['visitor'] },
  { path: '/register', screen: Register, roles: ['visitor'] },
  { path: '/forgot-password', screen: ForgotPassword, roles: ['visitor'] },
]
