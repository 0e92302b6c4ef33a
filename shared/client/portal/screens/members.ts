/** The screens of accounts: one script, which visitors need not load. */
export { AccountSettings } from './account.tsx'
export { Flags, Users } from './admin.tsx'
export { ConnectStore, Deliveries, Endpoints, Exports, Stores } from './connections.tsx'
export { Billing, Payouts } from './money.tsx'
export { Applications, EditOffer, Links, MyOffers, NewOffer } from './promotion.tsx'
export { Dashboard, PendingOrders, Receipt, Sales } from './sales.tsx'
