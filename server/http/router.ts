import { applicationsProcedures } from '../applications/applications.procedures.ts'
import { billingRouter, flagDecisionProcedures } from '../billing/billing.procedures.ts'
import { jobsRouter } from '../exports/exports.procedures.ts'
import { flagProcedures } from '../flags/flags.procedures.ts'
import { linkProcedures } from '../links/links.procedures.ts'
import { webhooksRouter } from '../notifications/channels/webhooks/webhooks.procedures.ts'
import { offersRouter, vettingProcedures } from '../offers/offers.procedures.ts'
import { payoutsRouter } from '../payouts/payouts.procedures.ts'
import { pendingOrdersRouter } from '../pending-orders/pending-orders.procedures.ts'
import { proceduresOf, router } from '../platform/api/procedure.ts'
import { profileProcedures, sessionProcedures } from '../profile/profile.procedures.ts'
import {
  listedLinkProcedures,
  liveRouter,
  summariesRouter,
  suspensionPreviewProcedures,
} from '../reports/reports.procedures.ts'
import { salesRouter } from '../sales/sales.procedures.ts'
import { storesRouter } from '../stores/stores.procedures.ts'
import { apiKeyProcedures } from '../users/api-keys.procedures.ts'
import { authProcedures, notificationProcedures, suspensionProcedures } from '../users/users.procedures.ts'

/** Every procedure of the service; each concept brings its own. */
export const appRouter = router({
  auth: router({ ...sessionProcedures, ...authProcedures, ...apiKeyProcedures }),
  users: router({ ...notificationProcedures, ...profileProcedures }),
  stores: storesRouter,
  offers: offersRouter,
  applications: applicationsProcedures,
  links: router({ ...linkProcedures, ...listedLinkProcedures }),
  sales: salesRouter,
  pendingOrders: pendingOrdersRouter,
  payouts: payoutsRouter,
  billing: billingRouter,
  admin: router({
    ...flagProcedures,
    ...flagDecisionProcedures,
    ...vettingProcedures,
    ...suspensionProcedures,
    ...suspensionPreviewProcedures,
  }),
  jobs: jobsRouter,
  summaries: summariesRouter,
  live: liveRouter,
  webhooks: webhooksRouter,
})

// A procedure without declared callers must not serve requests.
proceduresOf(appRouter)

export type AppRouter = typeof appRouter
