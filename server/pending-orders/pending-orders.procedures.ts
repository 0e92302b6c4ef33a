import { listPendingOrdersInput, pendingOrderPage } from '../../shared/schemas/pending-orders.ts'
import { mapPage, pageById } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { periodOf } from '../platform/clock.ts'
import { ownScope } from '../platform/database/keyset-scan.ts'
import { withNames } from '../sales/sale-explanation.service.ts'
import { wirePendingOrder } from './pending-order-wire.ts'
import { findPendingOrders } from './pending-orders.service.ts'

export const pendingOrdersRouter = router({
  list: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/pending-orders' },
    summary: 'List own pending orders',
    description:
      'Orders that were placed and lead to a link, newest first, such as cash on delivery: no sale and no money until the store reports the payment. A merchant sees orders of own stores, a creator orders through own links.',
  })
    .input(listPendingOrdersInput)
    .output(pendingOrderPage)
    .query(async ({ ctx, input }) => {
      const { limit, cursor, from, to, state, offer_id: offerId } = input
      const page = await pageById({ limit, cursor }, (request) =>
        findPendingOrders(ctx.platform.database.reader, ownScope(ctx.actor), {
          state,
          offerId,
          ...periodOf({ from, to }),
          ...request,
        }),
      )
      const items = await withNames(ctx.platform, page.items)
      return mapPage({ ...page, items }, (row) => wirePendingOrder(row, ctx.actor.role))
    }),
})
