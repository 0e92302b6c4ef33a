import { idParam } from '../../shared/schemas/common.ts'
import { listPayoutsInput, payoutPage } from '../../shared/schemas/payouts.ts'
import { decodeCursor, encodeCursor, mapPage, pageOf } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { wirePart, wirePayout } from './payout-wire.ts'
import { listPayoutParts, listPayouts } from './payouts.service.ts'

export const payoutsRouter = router({
  list: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/payouts' },
    summary: 'List own payouts',
    description:
      "A creator's own payouts. A merchant sees the part of each payout that came from own billing cycles. Newest first.",
  })
    .input(listPayoutsInput)
    .output(payoutPage)
    .query(async ({ ctx, input }) => {
      const filter = {
        state: input.state ?? null,
        before: decodeCursor(input.cursor, idParam),
        limit: input.limit + 1,
      }
      const cursorOf = (last: { id: string }) => encodeCursor(last.id)
      if (ctx.actor.role === 'merchant') {
        const parts = await listPayoutParts(ctx.platform, ctx.actor.userId, filter)
        return mapPage(pageOf(parts, input.limit, cursorOf), wirePart)
      }
      const rows = await listPayouts(ctx.platform, ctx.actor.userId, filter)
      return mapPage(pageOf(rows, input.limit, cursorOf), wirePayout)
    }),
})
