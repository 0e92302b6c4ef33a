import type { FunctionComponent } from 'preact'
import type { Role } from './client.ts'
import { AccountSettings } from './screens/account.tsx'
import { Applications } from './screens/applications.tsx'
import { Billing } from './screens/billing.tsx'
import { Dashboard } from './screens/dashboard.tsx'
import { Deliveries, Endpoints } from './screens/endpoints.tsx'
import { Exports } from './screens/exports.tsx'
import { Flags } from './screens/flags.tsx'
import { Links } from './screens/links.tsx'
import { ForgotPassword, LogIn, Register } from './screens/log-in.tsx'
import { OfferPage, Offers } from './screens/offers.tsx'
import { EditOffer, MyOffers, NewOffer } from './screens/offers-manage.tsx'
import { Payouts } from './screens/payouts.tsx'
import { Receipt } from './screens/receipt.tsx'
import { PendingOrders, Sales } from './screens/sales.tsx'
import { ConnectStore, Stores } from './screens/stores.tsx'
import { Users } from './screens/users.tsx'
import { key } from './text.ts'

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
  { path: '/dashboard', screen: Dashboard, roles: BOTH, nav: key('Dashboard') },
  { path: '/sales', screen: Sales, roles: BOTH, nav: key('Sales') },
  { path: '/sales/:id', screen: Receipt, roles: BOTH },
  { path: '/pending-orders', screen: PendingOrders, roles: BOTH, nav: key('Pending orders') },
  { path: '/my-offers', screen: MyOffers, roles: ['merchant'], nav: key('My offers') },
  { path: '/my-offers/new', screen: NewOffer, roles: ['merchant'] },
  { path: '/my-offers/:id', screen: EditOffer, roles: ['merchant'] },
  { path: '/applications', screen: Applications, roles: BOTH, nav: key('Applications') },
  { path: '/links', screen: Links, roles: BOTH, nav: key('Links') },
  { path: '/stores', screen: Stores, roles: ['merchant'], nav: key('Stores') },
  { path: '/stores/new', screen: ConnectStore, roles: ['merchant'] },
  { path: '/billing', screen: Billing, roles: ['merchant'], nav: key('Billing') },
  { path: '/payouts', screen: Payouts, roles: BOTH, nav: key('Payouts') },
  { path: '/exports', screen: Exports, roles: BOTH, nav: key('Exports') },
  { path: '/webhooks', screen: Endpoints, roles: BOTH, nav: key('Webhooks') },
  { path: '/webhooks/:id', screen: Deliveries, roles: BOTH },
  { path: '/offers', screen: Offers, nav: key('Offers') },
  { path: '/offers/:id', screen: OfferPage },
  { path: '/flags', screen: Flags, roles: ['admin'], nav: key('Flags') },
  { path: '/users', screen: Users, roles: ['admin'], nav: key('Users') },
  { path: '/account', screen: AccountSettings, roles: ['merchant', 'creator', 'admin'] },
  { path: '/login', screen: LogIn, roles: ['visitor'] },
  { path: '/register', screen: Register, roles: ['visitor'] },
  { path: '/forgot-password', screen: ForgotPassword, roles: ['visitor'] },
]
