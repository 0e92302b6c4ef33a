import { cyclePage, listCyclesInput } from '../../shared/schemas/billing.ts'
import { mapPage, pageById } from '../platform/api/page.ts'
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
      const filter = { merchantId: ctx.actor.userId, state: input.state ?? null }
      const page = await pageById(input, (request) => listCycles(ctx.platform, { ...filter, ...request }))
      return mapPage(page, wireCycle)
    }),
})
