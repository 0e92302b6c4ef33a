import { z } from 'zod'
import {
  currency,
  idParam,
  isInOrder,
  moneyText,
  NOT_IN_ORDER,
  pageInput,
  pageOf,
  wireTime,
  wireTimeInput,
} from './common.ts'
import { party } from './offers.ts'

export const pendingOrderState = z
  .enum(['pending', 'became_sale', 'cancelled', 'expired'])
  .describe(
    '`pending`: not paid yet. `became_sale`: the payment was reported and decided; see the sale. `expired`: not paid within PENDING_ORDER_DAYS; a later payment still becomes a sale.',
  )

export const pendingOrder = z
  .object({
    id: idParam,
    order_name: z.string().meta({ description: 'As the store shows it.', example: '#1001' }),
    state: pendingOrderState,
    offer: z
      .object({ id: idParam, title: z.string().describe('As creators see it.') })
      .describe('That the link is for.'),
    creator: party.describe('Whose link it is.'),
    affiliate_link_slug: z.string().describe('Of the link that the order leads to.'),
    attributed_by: z.enum(['coupon', 'click']).describe('What credits the order to the link.'),
    expected_commission: moneyText.describe(
      'What would be paid if the order were paid unchanged; of an order with a sale, what the sale pays.',
    ),
    currency,
    sale_id: idParam.nullable().describe('Of the sale that it became.'),
    placed_at: wireTime.describe('When the order was placed in the store.'),
    updated_at: wireTime,
    order_id: z.string().optional().meta({
      description: "The store's own id of the order; for the merchant only.",
      example: '5912345678901',
    }),
    store: z
      .object({ id: idParam, shop_domain: z.string().describe('The `.myshopify.com` name of the shop.') })
      .optional()
      .describe('For the merchant only.'),
  })
  .meta({ id: 'PendingOrder' })
export type PendingOrder = z.infer<typeof pendingOrder>

export const listPendingOrdersInput = z
  .strictObject({
    state: pendingOrderState.optional(),
    offer_id: idParam.optional(),
    from: wireTimeInput.optional().describe('Inclusive, on placed_at.'),
    to: wireTimeInput.optional().describe('Exclusive, on placed_at.'),
    ...pageInput,
  })
  .refine(isInOrder, NOT_IN_ORDER)
  .prefault({})
export const pendingOrderPage = pageOf(pendingOrder)
