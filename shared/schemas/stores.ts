import { z } from 'zod'
import { withoutInvisible } from '../pasted-text.ts'
import { idParam, pageOf, wireTime } from './common.ts'

const HOST_NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/

/** A host name, in small letters; without scheme, port or path. */
export const shopDomain = z.string().trim().toLowerCase().max(253).regex(HOST_NAME)

const SCHEME = /^(?:https?:)?\/\//
const ADMIN_PAGE = /^admin\.shopify\.com\/store\/([a-z0-9-]+)(?![^/?#])/
const AFTER_HOST = /(?::443)?(?:[/?#].*)?$/s
/** What shows that a host was meant, at the ends of what people copy out of a sentence. */
const AROUND_HOST = /^[<("'*]+|[>)"'*.,;]+$/g

const LONGEST_ADDRESS = 2048

/**
 * The host name in an address of a shop, or of its pages in Shopify's admin, as people paste it. Other texts come back trimmed, longer ones
 * as they are.
 */
export function plainShopDomain(pasted: string): string {
  if (pasted.length > LONGEST_ADDRESS) return pasted
  const text = withoutInvisible(pasted).trim().toLowerCase().replace(AROUND_HOST, '').replace(SCHEME, '')
  const name = ADMIN_PAGE.exec(text)?.[1]
  return name === undefined ? text.replace(AFTER_HOST, '') : `${name}.myshopify.com`
}

const SHOPIFY_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.myshopify\.com$/

/** The name of a shop as its webhooks carry it, from what a merchant pastes. */
export const shopDomainInput = z
  .string()
  .max(LONGEST_ADDRESS)
  .overwrite(plainShopDomain)
  .refine(
    (domain) => SHOPIFY_NAME.test(domain),
    'must be the name that ends in .myshopify.com, such as my-shop.myshopify.com. Shopify shows it under Settings → Domains; the shop of admin.shopify.com/store/my-shop is my-shop.myshopify.com',
  )
  .meta({
    description:
      "The shop's `.myshopify.com` name, which its webhooks carry, also where the shop has its own domain. Also taken out of a pasted address: `https://my-shop.myshopify.com/`, `admin.shopify.com/store/my-shop`; in any case, with spaces or invisible characters around. Answered as the plain host name.",
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

/** What can lead an order to its link, in the order of `tracked_30d`. */
export const ORDER_SOURCES = ['cart', 'landing', 'line', 'coupon', 'none'] as const
export type OrderSource = (typeof ORDER_SOURCES)[number]

export const storeStatus = z
  .enum(['waiting', 'receiving', 'silent', 'rejecting', 'no_order_payment', 'xml'])
  .describe(
    '`waiting`: no signed event since the store was connected. `receiving`: signed events arrive. `silent`: none for some days, after orders came regularly. `rejecting`: the last delivery in the name of this shop failed verification. `no_order_payment`: its webhook was made for another event, such as "Order creation": no paid order is reported. `xml`: its webhook was made with the format XML, which cannot be read.',
  )

const orders = z.int().nonnegative().describe('How many orders.')

export const store = z
  .object({
    id: idParam,
    platform: z.literal('shopify').describe('The one store platform that is supported.'),
    shop_domain: z
      .string()
      .meta({ description: 'The `.myshopify.com` name of the shop.', example: 'my-shop.myshopify.com' }),
    status: storeStatus,
    webhook_url: z.string().meta({
      description: 'Where the store must send its webhook.',
      example: 'https://affiliate.example/webhooks/store-sales',
    }),
    script_url: z.string().meta({
      description: "The script for the store's theme.",
      example: 'https://affiliate.example/store.js',
    }),
    script_tag: z.string().meta({
      description:
        'The line to put before `</head>` in the theme. `data-days` follows the longest attribution window of your live offers above 30 days: when it grows, replace the line.',
      example: '<script src="https://affiliate.example/store.js" async></script>',
    }),
    last_event_at: wireTime.nullable().describe('When the last signed event that was applied was received.'),
    last_refused_at: wireTime
      .nullable()
      .describe(
        'When a delivery in the name of this shop last failed verification, to the minute. Anyone can send one.',
      ),
    last_refusal: z
      .object({
        at: wireTime,
        reason: z
          .enum(['no_signature', 'wrong_signature'])
          .describe('`wrong_signature`: another secret signed it, or the body was changed.'),
      })
      .nullable()
      .describe('The last delivery in the name of this shop that failed verification, and why.'),
    unreadable_7d: z
      .int()
      .describe(
        'Validly signed orders of the last 7 days that could not be read: a field is missing or of another type.',
      ),
    tracked_30d: z
      .object({ cart: orders, landing: orders, line: orders, coupon: orders, none: orders })
      .describe(
        'The orders of the last 30 days, without test orders, by what led to a link: a cart attribute, the landing page, a line property (buy now), a coupon code, or nothing.',
      ),
    created_at: wireTime,
  })
  .meta({ id: 'Store' })
export type Store = z.infer<typeof store>

export const connectStoreInput = z.strictObject({
  shop_domain: shopDomainInput,
  webhook_secret: webhookSecret,
})
export const changeStoreInput = z
  .strictObject({
    id: idParam,
    shop_domain: shopDomainInput.optional().describe('The new name of the same shop, if it has changed.'),
    webhook_secret: webhookSecret.optional(),
    revoke_former: z
      .boolean()
      .optional()
      .describe(
        'Ends the former secrets at once. Otherwise the one that is replaced stays valid for 24 hours.',
      ),
  })
  .refine((change) => change.shop_domain !== undefined || change.webhook_secret !== undefined, {
    message: 'is needed, or webhook_secret',
    path: ['shop_domain'],
  })
  .refine((change) => !change.revoke_former || change.webhook_secret !== undefined, {
    message: 'is for a new webhook_secret only',
    path: ['revoke_former'],
  })
export const storePage = pageOf(store)
