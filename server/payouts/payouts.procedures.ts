import { listPayoutsInput, payoutPage } from '../../shared/schemas/payouts.ts'
import { mapPage, pageById } from '../platform/api/page.ts'
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
      const { platform, actor } = ctx
      const state = input.state ?? null
      if (actor.role === 'merchant') {
        const parts = await pageById(input, (request) =>
          listPayoutParts(platform, actor.userId, { state, ...request }),
        )
        return mapPage(parts, wirePart)
      }
      const payouts = await pageById(input, (request) =>
        listPayouts(platform.database.reader, actor.userId, { state, ...request }),
      )
      return mapPage(payouts, wirePayout)
    }),
})
