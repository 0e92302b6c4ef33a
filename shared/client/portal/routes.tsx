import type { FunctionComponent } from 'preact'
import type { Role } from './client.ts'
import { AccountSettings } from './screens/account.tsx'
import { Flags } from './screens/flags.tsx'
import { ForgotPassword, LogIn, Register } from './screens/log-in.tsx'
import { Offers } from './screens/offers.tsx'
import { Sales } from './screens/sales.tsx'
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

/** Every screen, in the order of the navigation. `/` leads to the first one that the role sees in the navigation. */
export const ROUTES: readonly ScreenRoute[] = [
  { path: '/sales', screen: Sales, roles: ['merchant', 'creator'], nav: key('Sales') },
  { path: '/offers', screen: Offers, nav: key('Offers') },
  { path: '/flags', screen: Flags, roles: ['admin'], nav: key('Flags') },
  { path: '/account', screen: AccountSettings, roles: ['merchant', 'creator', 'admin'] },
  { path: '/login', screen: LogIn, roles: ['visitor'] },
  { path: '/register', screen: Register, roles: ['visitor'] },
  { path: '/forgot-password', screen: ForgotPassword, roles: ['visitor'] },
]
