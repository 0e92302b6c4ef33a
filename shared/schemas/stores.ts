import { z } from 'zod'
import { idParam, pageInput, pageOf, wireTime } from './common.ts'

const HOST_NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/

/** A store's host name, in small letters; without scheme, port or path. */
export const shopDomain = z
  .string()
  .trim()
  .toLowerCase()
  .max(253)
  .regex(HOST_NAME, 'must be a plain host name such as my-shop.myshopify.com')
  .meta({
    description: 'The host name that the store sends as X-Shopify-Shop-Domain.',
    example: 'my-shop.myshopify.com',
  })

/** The key that the store signs its webhooks with; never sent back. */
const webhookSecret = z
  .string()
  .trim()
  .min(8)
  .max(256)
  .regex(/^[\x21-\x7e]+$/, 'must be the key as the store shows it, without spaces')
  .meta({
    description: 'The key the store signs webhooks with. Kept encrypted and never sent back.',
    example: 'shpss_5c1d0f8a7b3e4926',
  })

export const store = z
  .object({
    id: idParam,
    platform: z.literal('shopify').describe('The one store platform that is supported.'),
    shop_domain: z.string().meta({ example: 'my-shop.myshopify.com' }),
    unreadable_7d: z
      .int()
      .describe(
        'Validly signed orders of the last 7 days that could not be read: a field is missing or of another type.',
      ),
    created_at: wireTime,
  })
  .meta({ id: 'Store' })
export type Store = z.infer<typeof store>

export const connectStoreInput = z.strictObject({ shop_domain: shopDomain, webhook_secret: webhookSecret })
export const listStoresInput = z.strictObject({ ...pageInput }).prefault({})
export const getStoreInput = z.strictObject({ id: idParam })
export const rotateSecretInput = z.strictObject({
  id: idParam,
  webhook_secret: webhookSecret,
  revoke_former: z
    .boolean()
    .optional()
    .describe(
      'Ends the former secrets at once. Otherwise the one that is replaced stays valid for 24 hours.',
    ),
})
export const removeStoreInput = z.strictObject({ id: idParam })
export const storePage = pageOf(store)
