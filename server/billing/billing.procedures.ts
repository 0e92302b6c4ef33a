import { flag, resolveFlagInput } from '../../shared/schemas/admin.ts'
import { cyclePage, listCyclesInput } from '../../shared/schemas/billing.ts'
import { wireFlag } from '../flags/flags.service.ts'
import { mapPage, pageById } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { listCycles } from './billing.service.ts'
import { wireCycle } from './billing-wire.ts'
import { decideFlag } from './credit-requests.service.ts'

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
      return mapPage(page, (row) => wireCycle(ctx.platform, row))
    }),
})

/** Decisions on flags, for admins: one declines a credit request. */
export const flagDecisionProcedures = {
  resolveFlag: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/flagged/:id/resolve' },
    summary: 'Resolve a flag',
    description:
      'Records what was found and done. A credit request is declined by it; a billing credit grants one. Repeating the note changes nothing; another note is refused with `already_decided`.',
    errors: ['not_found', 'already_decided'],
    details: { already_decided: 'This flag was resolved with another note.' },
  })
    .input(resolveFlagInput)
    .output(flag)
    .mutation(async ({ ctx, input: { id: flagId, note } }) => {
      const { userId: actor } = ctx.actor
      return wireFlag(await decideFlag(ctx.platform, { flagId, note, actor }))
    }),
}
