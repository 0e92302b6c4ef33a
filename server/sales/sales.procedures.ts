import { parseMoney } from '../../shared/money.ts'
import { creditRequest, requestCreditInput } from '../../shared/schemas/admin.ts'
import { idInput } from '../../shared/schemas/common.ts'
import { listSalesInput, salePage, saleWithReceipt } from '../../shared/schemas/sales.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { ownScope } from '../platform/database/keyset-scan.ts'
import { requestCredit } from './credit-request.service.ts'
import { explainSale } from './sale-explanation.service.ts'
import { listSales } from './sale-list.service.ts'
import { wireExplanation, wireNamedSale } from './sale-wire.ts'

export const salesRouter = router({
  list: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/sales' },
    summary: 'List own sales',
    description:
      'Accepted and rejected sales, newest first. A merchant sees sales of own stores, a creator sales of own links. A filtered page can have fewer items than `limit`: go on until `next_cursor` is null.',
  })
    .input(listSalesInput)
    .output(salePage)
    .query(async ({ ctx, input }) => {
      const page = await listSales(ctx.platform, ownScope(ctx.actor), input)
      return mapPage(page, (sale) => wireNamedSale(sale, ctx.actor.role))
    }),

  get: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/sales/:id' },
    summary: 'Get a sale with its receipt and outcome',
    description:
      'Each check with its inputs and verdict, the calculation per line, the billing cycle and the payouts. Merchant and creator see the same sale without the details that are private to the other.',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(saleWithReceipt)
    .query(async ({ ctx, input }) => {
      const explanation = await explainSale(ctx.platform, ownScope(ctx.actor), input.id)
      return wireExplanation(explanation, ctx.actor.role)
    }),

  requestCredit: procedure(['merchant'], {
    rest: { method: 'POST', path: '/sales/:id/credit-request', status: 202 },
    creates: true,
    summary: 'Request a billing credit for an own sale',
    description:
      'Stores a request that an operator grants or declines; no money moves. The amount is limited to what was billed for the sale. While a request is open, the same request changes nothing and a different one is refused.',
    errors: ['not_found', 'conflict', 'quota_exceeded'],
    details: {
      conflict: 'At most 562.50 was billed for this sale.',
      quota_exceeded: 'At most 50 credit requests can be open at a time. Try again when one is resolved.',
    },
  })
    .input(requestCreditInput)
    .output(creditRequest)
    .mutation(({ ctx, input: { id: saleId, amount, reason } }) =>
      requestCredit(ctx.platform, ctx.actor.userId, { saleId, amount: parseMoney(amount) ?? 0, reason }),
    ),
})
