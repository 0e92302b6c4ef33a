import { formatMoney, parseMoney } from '../../shared/money.ts'
import { creditRequest, requestCreditInput } from '../../shared/schemas/admin.ts'
import { idParam } from '../../shared/schemas/common.ts'
import { getSaleInput, listSalesInput, salePage, saleWithReceipt } from '../../shared/schemas/sales.ts'
import { toWireTime } from '../platform/clock.ts'
import { decodeCursor, encodeCursor, mapPage, pageOf } from '../platform/page.ts'
import { type Actor, procedure, router } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { requestCredit } from './credit-request.service.ts'
import { getSaleStory } from './sale-story.service.ts'
import { wireSale, wireSaleStory } from './sale-wire.ts'
import { listSales, type SaleScope } from './sales.service.ts'

export const salesRouter = router({
  list: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/sales' },
    summary: 'List own sales',
    description:
      'Of own stores for a merchant, of own links for a creator; accepted and rejected, newest first.',
  })
    .input(listSalesInput)
    .output(salePage)
    .query(async ({ ctx, input }) => {
      const rows = await listSales(ctx.platform, scopeOf(ctx.actor), {
        acceptanceStatus: input.acceptance_status ?? null,
        offerId: input.offer_id ?? null,
        from: input.from === undefined ? null : Date.parse(input.from),
        to: input.to === undefined ? null : Date.parse(input.to),
        before: decodeCursor(input.cursor, idParam),
        limit: input.limit + 1,
      })
      return mapPage(
        pageOf(rows, input.limit, (last) => encodeCursor(last.id)),
        (row) => wireSale(row, ctx.actor.role),
      )
    }),

  get: procedure(['merchant', 'creator'], {
    rest: { method: 'GET', path: '/sales/:id' },
    summary: 'One sale with its decision receipt and what came of it',
    description:
      'Each check of the decision with what it saw and its verdict, the arithmetic line by line, the billing cycle and the payouts. Merchant and creator see the same sale, each without what is private to the other.',
    errors: ['not_found'],
  })
    .input(getSaleInput)
    .output(saleWithReceipt)
    .query(async ({ ctx, input }) => {
      const sale = await getSaleStory(ctx.platform, scopeOf(ctx.actor), input.id)
      if (!sale) throw new Refusal('not_found', 'There is no such sale.')
      return wireSaleStory(sale, ctx.actor.role)
    }),

  requestCredit: procedure(['merchant'], {
    rest: { method: 'POST', path: '/sales/:id/credit-request', status: 202 },
    summary: 'Ask for a billing credit on an own sale',
    description:
      'Moves no money: an operator grants or declines it. Answers the request as it is stored. At most what was billed for the sale. The same request again changes nothing while it waits; another one is refused.',
    errors: ['not_found', 'conflict', 'quota_exceeded'],
  })
    .input(requestCreditInput)
    .output(creditRequest)
    .mutation(async ({ ctx, input }) => {
      const amount = parseMoney(input.amount) ?? 0
      const { id: saleId, reason } = input
      const request = await requestCredit(ctx.platform, ctx.actor.userId, { saleId, amount, reason })
      return {
        flag_id: request.flagId,
        sale_id: request.saleId,
        amount: formatMoney(request.amount),
        currency: 'PKR' as const,
        reason: request.reason,
        status: 'pending' as const,
        created_at: toWireTime(request.createdAt),
      }
    }),
})

function scopeOf(actor: Actor): SaleScope {
  return actor.role === 'merchant' ? { merchantId: actor.userId } : { creatorId: actor.userId }
}
