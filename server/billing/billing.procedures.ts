import { cyclePage, listCyclesInput } from '../../shared/schemas/billing.ts'
import { idParam } from '../../shared/schemas/common.ts'
import { decodeCursor, encodeCursor, mapPage, pageOf } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { listCycles } from './billing.service.ts'
import { wireCycle } from './billing-wire.ts'

export const billingRouter = router({
  listCycles: procedure(['merchant'], {
    rest: { method: 'GET', path: '/billing-cycles' },
    summary: 'List own billing cycles',
    description: 'Newest first, each with its invoice and payment reference.',
  })
    .input(listCyclesInput)
    .output(cyclePage)
    .query(async ({ ctx, input }) => {
      const rows = await listCycles(ctx.platform, {
        merchantId: ctx.actor.userId,
        state: input.state ?? null,
        before: decodeCursor(input.cursor, idParam),
        limit: input.limit + 1,
      })
      return mapPage(
        pageOf(rows, input.limit, (last) => encodeCursor(last.id)),
        wireCycle,
      )
    }),
})
