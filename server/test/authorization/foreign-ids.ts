import { z } from 'zod'
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

/** What an id that is none of the caller's business comes to: a list filtered by it is empty, nothing else is found. */
export function refusalOf(procedure: string): '404' | 'empty list' {
  return procedure.endsWith('.list') ? 'empty list' : '404'
}

/** Ids of another tenant that a caller may use, as `procedure field`. */
export const OPEN_IDS: Record<string, readonly Kind[]> = {
  // A filter over what is public: live offers.
  'offers.list merchant_id': ['merchant'],
  'offers.get id': ['live offer'],
  // Creators apply to any merchant; what is not live answers 409.
  'applications.apply id': ['draft offer', 'live offer', 'ended offer'],
}

/** Admins have no tenant: they may use every id of the right kind. */
export const ADMIN_IDS: Record<string, readonly Kind[]> = {
  'offers.get id': ['draft offer', 'live offer', 'ended offer'],
  'offers.list merchant_id': ['merchant'],
  'admin.resolveFlag id': ['flag'],
  'admin.vetOffer id': ['draft offer', 'live offer', 'ended offer'],
  'admin.previewSuspension id': ['merchant', 'creator', 'admin'],
  'admin.suspendUser id': ['merchant', 'creator', 'admin'],
  'admin.reinstateUser id': ['merchant', 'creator', 'admin'],
  'jobs.startExport billing_cycle_id': ['billing cycle'],
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
