import type { FunctionComponent } from 'preact'
import type { Role } from './client.ts'
import { AccountSettings } from './screens/account.tsx'
import { Dashboard } from './screens/dashboard.tsx'
import { Flags } from './screens/flags.tsx'
import { Links } from './screens/links.tsx'
import { ForgotPassword, LogIn, Register } from './screens/log-in.tsx'
import { OfferPage, Offers } from './screens/offers.tsx'
import { Payouts } from './screens/payouts.tsx'
import { Receipt } from './screens/receipt.tsx'
import { PendingOrders, Sales } from './screens/sales.tsx'
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
  { path: '/links', screen: Links, roles: BOTH, nav: key('Links') },
  { path: '/payouts', screen: Payouts, roles: BOTH, nav: key('Payouts') },
  { path: '/offers', screen: Offers, nav: key('Offers') },
  { path: '/offers/:id', screen: OfferPage },
  { path: '/flags', screen: Flags, roles: ['admin'], nav: key('Flags') },
  { path: '/account', screen: AccountSettings, roles: ['merchant', 'creator', 'admin'] },
  { path: '/login', screen: LogIn, roles: ['visitor'] },
  { path: '/register', screen: Register, roles: ['visitor'] },
  { path: '/forgot-password', screen: ForgotPassword, roles: ['visitor'] },
]
