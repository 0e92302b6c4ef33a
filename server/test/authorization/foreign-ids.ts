import { z } from 'zod'
import type { Role } from '../../../shared/schemas/common.ts'
import { idParam } from '../../../shared/schemas/common.ts'
import type { JsonSchema } from '../../http/rest-input.ts'

/** Everything that a tenant owns and that has an id. */
export const KINDS = [
  'merchant',
  'creator',
  'admin',
  'session',
  'API key',
  'store',
  'draft offer',
  'live offer',
  'ended offer',
  'pending application',
  'approved application',
  'link',
  'click',
  'accepted sale',
  'rejected sale',
  'billing cycle',
  'payout',
  "merchant's export",
  "creator's export",
  "admin's export",
  'flag',
  'webhook endpoint',
  'webhook delivery',
] as const
export type Kind = (typeof KINDS)[number]

export interface IdRule {
  /** What an id that is none of the caller's business comes to. */
  answer: '404' | 'empty list'
  /** Ids of another tenant that the caller may use, and why. */
  open?: { kinds: readonly Kind[]; why: string; to?: readonly Role[] }
}

/** Each id that a caller can name, as `procedure field`. */
export const ID_RULES: Record<string, IdRule> = {
  'auth.endSession id': { answer: '404' },
  'auth.deleteApiKey id': { answer: '404' },
  'stores.get id': { answer: '404' },
  'stores.rotateSecret id': { answer: '404' },
  'stores.remove id': { answer: '404' },
  'offers.list merchant_id': {
    answer: 'empty list',
    open: { kinds: ['merchant'], why: 'a filter over what is public: live offers' },
  },
  'offers.get id': { answer: '404', open: { kinds: ['live offer'], why: 'live offers are public' } },
  'offers.update id': { answer: '404' },
  'offers.setStatus id': { answer: '404' },
  'applications.apply id': {
    answer: '404',
    open: {
      kinds: ['draft offer', 'live offer', 'ended offer'],
      why: 'creators apply to any merchant; what is not live answers 409',
    },
  },
  'applications.listForOffer id': { answer: '404' },
  'applications.decide id': { answer: '404' },
  'applications.withdraw id': { answer: '404' },
  'links.list offer_id': { answer: 'empty list' },
  'pendingOrders.list offer_id': { answer: 'empty list' },
  'sales.list offer_id': { answer: 'empty list' },
  'sales.list creator_id': { answer: 'empty list' },
  'sales.list store_id': { answer: 'empty list' },
  'sales.list billing_cycle_id': { answer: 'empty list' },
  'sales.get id': { answer: '404' },
  'sales.requestCredit id': { answer: '404' },
  'jobs.startExport billing_cycle_id': { answer: '404' },
  'jobs.get id': { answer: '404' },
  'webhooks.get id': { answer: '404' },
  'webhooks.update id': { answer: '404' },
  'webhooks.remove id': { answer: '404' },
  'webhooks.rotate id': { answer: '404' },
  'webhooks.deliveries id': { answer: '404' },
  'webhooks.retry id': { answer: '404' },
  'webhooks.test id': { answer: '404' },
}

/** Admins have no tenant: they may use every id of the right kind. */
export const ADMIN_IDS: Record<string, readonly Kind[]> = {
  'offers.get id': ['draft offer', 'live offer', 'ended offer'],
  'offers.list merchant_id': ['merchant'],
  'admin.resolveFlag id': ['flag'],
  'admin.vetOffer id': ['draft offer', 'live offer', 'ended offer'],
  'admin.suspendUser id': ['merchant', 'creator', 'admin'],
  'admin.reinstateUser id': ['merchant', 'creator', 'admin'],
  'jobs.startExport billing_cycle_id': ['billing cycle'],
  // Admins do not see other accounts' private data.
  'auth.endSession id': [],
  'jobs.get id': [],
}

const ID_PATTERN = (z.toJSONSchema(idParam) as JsonSchema).pattern

/** The paths of all fields of an input that take an id, in dots; those of lists end in `[]`. */
export function idFieldsOf(schema: JsonSchema, root = schema, path = ''): string[] {
  if (schema.$ref) return idFieldsOf(root.$defs?.[schema.$ref.replace('#/$defs/', '')] ?? {}, root, path)
  if (schema.pattern === ID_PATTERN) return [path]
  const inside = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    idFieldsOf(field, root, path === '' ? name : `${path}.${name}`),
  )
  const items = schema.items ? idFieldsOf(schema.items, root, `${path}[]`) : []
  return [...inside, ...items, ...(schema.anyOf ?? []).flatMap((option) => idFieldsOf(option, root, path))]
}
