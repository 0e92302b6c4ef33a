import { CREATOR_EVENTS, MERCHANT_EVENTS } from '../../../../shared/events.ts'
import type { Role } from '../../../../shared/schemas/common.ts'
import { type AuditRecord, recordAudit } from '../../../flags/audit.service.ts'
import { type PageRequest, pageById } from '../../../platform/api/page.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../../../platform/api/refusal.ts'
import { isoTime } from '../../../platform/clock.ts'
import type { Queries, Tx } from '../../../platform/database/database.ts'
import { changeRow, insertRow, lockRows, updateRows } from '../../../platform/database/protected-rows.ts'
import { isId } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { checkQuota } from '../../../users/users.service.ts'
import { publishEvents } from '../../outbox.service.ts'
import { createSecret, replaceSecret } from './endpoint-secrets.service.ts'
import { checkEndpointUrl } from './endpoint-url.ts'
import type { DisabledReason } from './webhook.entity.ts'
import {
  countEndpoints,
  deleteSecrets,
  type EndpointRow,
  enabledEndpoints,
  failPending,
  ownEndpoint,
  pageOfEndpoints,
  secretsOf,
} from './webhooks.store.ts'

export const MAX_ENDPOINTS = 10

/** An endpoint with the end of its former secret's validity, epoch ms. */
export interface ShownEndpoint extends EndpointRow {
  formerSecretUntil: number | null
}

type EndpointWithSecret = ShownEndpoint & { secret: string }

/** The events that each role's endpoints can receive. */
const EVENTS_OF: Record<Role, readonly string[]> = {
  merchant: MERCHANT_EVENTS,
  creator: CREATOR_EVENTS,
  admin: [],
}

interface EndpointFields {
  url: string
  events: readonly string[]
  description: string
}

/**
 * Adds an endpoint with a new secret, which only this answer shows. Refuses with `validation_failed` (an address that is not public https, or an
 * event of the other role) and `quota_exceeded`.
 */
export async function createEndpoint(
  platform: Platform,
  actor: Actor,
  fields: EndpointFields,
): Promise<EndpointWithSecret> {
  const url = checkedUrl(platform, fields.url)
  const events = checkedEvents(actor.role, fields.events)
  return platform.database.transaction(async (tx) => {
    await checkQuota(tx, actor.userId, {
      most: MAX_ENDPOINTS,
      count: () => countEndpoints(tx, actor.userId),
      detail: `At most ${MAX_ENDPOINTS} webhook endpoints per account. Remove one before you add another.`,
    })
    const now = platform.clock.now()
    const endpoint = await insertRow(tx, 'webhook_endpoints', {
      id: platform.ids.next(),
      account_id: actor.userId,
      url,
      description: fields.description,
      events,
      disabled_at: null,
      disabled_reason: null,
      failing_since: null,
      created_at: now,
      updated_at: now,
      removed_at: null,
    })
    const secret = await createSecret(platform, tx, endpoint)
    await audit(platform, tx, actor.userId, 'create', endpoint.id, { after: auditedEndpoint(endpoint) })
    return { ...endpoint, formerSecretUntil: null, secret }
  })
}

/** The account's endpoints, newest first; with `null` those of every account, for operators. */
export async function listEndpoints(platform: Platform, accountId: string | null, page: PageRequest) {
  const { reader } = platform.database
  const found = await pageById(page, (request) => pageOfEndpoints(reader, accountId, request))
  return { ...found, items: await showEndpoints(platform, reader, found.items) }
}

/** The account's endpoint, or with `null` that of any account, for operators. Refuses with `not_found`. */
export async function getEndpoint(
  platform: Platform,
  accountId: string | null,
  endpointId: string,
): Promise<ShownEndpoint> {
  const { reader } = platform.database
  const endpoint = isId(endpointId) ? await ownEndpoint(reader, accountId, endpointId) : undefined
  if (!endpoint) throw endpointNotFound()
  return showEndpoint(platform, reader, endpoint)
}

interface EndpointChange {
  url?: string | undefined
  events?: readonly string[] | undefined
  description?: string | undefined
  enabled?: boolean | undefined
}

/**
 * Changes what is given. Disabling fails the pending deliveries. Refuses with `not_found`, `validation_failed` and `conflict` (an
 * operator disabled the endpoint).
 */
export async function updateEndpoint(
  platform: Platform,
  actor: Actor,
  endpointId: string,
  change: EndpointChange,
): Promise<ShownEndpoint> {
  const url = change.url === undefined ? undefined : checkedUrl(platform, change.url)
  const events = change.events === undefined ? undefined : checkedEvents(actor.role, change.events)
  return platform.database.transaction(async (tx) => {
    const endpoint = await lockEndpoint(tx, actor.userId, endpointId)
    const before = auditedEndpoint(endpoint)
    const now = platform.clock.now()
    const isEnabled = endpoint.disabled_at === null
    const enables = change.enabled === true && !isEnabled
    const disables = change.enabled === false && isEnabled
    if (enables && endpoint.disabled_reason === 'operator') {
      throw new Refusal('conflict', 'An operator disabled this endpoint. Ask the operator to enable it.')
    }
    await changeRow(tx, 'webhook_endpoints', endpoint, {
      ...(url !== undefined && url !== endpoint.url && { url, failing_since: null }),
      ...(events !== undefined && { events }),
      ...(change.description !== undefined && { description: change.description }),
      ...(enables && { disabled_at: null, disabled_reason: null, failing_since: null }),
      ...(disables && { disabled_at: now, disabled_reason: 'owner' as const }),
      updated_at: now,
    })
    if (disables) await failPending(tx, endpoint.id, DISABLED, now)
    const after = auditedEndpoint(endpoint)
    await audit(platform, tx, actor.userId, 'update', endpoint.id, { before, after })
    return showEndpoint(platform, tx, endpoint)
  })
}

/** Removes an endpoint and its secrets; pending deliveries fail. Refuses with `not_found`. */
export async function removeEndpoint(platform: Platform, actor: Actor, endpointId: string): Promise<void> {
  await platform.database.transaction(async (tx) => {
    const endpoint = await lockEndpoint(tx, actor.userId, endpointId)
    const now = platform.clock.now()
    await audit(platform, tx, actor.userId, 'remove', endpoint.id, { before: auditedEndpoint(endpoint) })
    await changeRow(tx, 'webhook_endpoints', endpoint, { removed_at: now, updated_at: now })
    await deleteSecrets(tx, endpoint.id)
    await failPending(tx, endpoint.id, 'The endpoint was removed.', now)
  })
}

/** Gives an endpoint a new secret; the present one signs too for 24 hours. Refuses with `not_found`. */
export async function rotateEndpointSecret(
  platform: Platform,
  actor: Actor,
  endpointId: string,
): Promise<EndpointWithSecret> {
  return platform.database.transaction(async (tx) => {
    const endpoint = await lockEndpoint(tx, actor.userId, endpointId)
    await changeRow(tx, 'webhook_endpoints', endpoint, { updated_at: platform.clock.now() })
    const secret = await replaceSecret(platform, tx, endpoint)
    await audit(platform, tx, actor.userId, 'rotate', endpoint.id, { after: auditedEndpoint(endpoint) })
    return { ...(await showEndpoint(platform, tx, endpoint)), secret }
  })
}

/** What deliveries of a disabled endpoint fail with. */
export const DISABLED = 'The endpoint was disabled.'

interface Disabling {
  endpointId: string
  reason: DisabledReason
  /** A user's id, `OPERATOR` or `SERVICE`. */
  actor: string
  note: string | null
}

/** The actor of audit entries about what the service does by itself. */
export const SERVICE = 'service'

/** Disables an endpoint and publishes that to its owner. Returns false if it is disabled or removed already. */
export async function disableEndpoint(platform: Platform, tx: Tx, disabling: Disabling): Promise<boolean> {
  const now = platform.clock.now()
  const enabled = { id: disabling.endpointId, disabled_at: null, removed_at: null }
  const change = { disabled_at: now, disabled_reason: disabling.reason, updated_at: now }
  const [endpoint] = await updateRows(tx, 'webhook_endpoints', enabled, change)
  if (!endpoint) return false
  await failPending(tx, endpoint.id, DISABLED, now)
  await audit(platform, tx, disabling.actor, 'disable', endpoint.id, {
    reason: disabling.note,
    before: { enabled: true },
    after: auditedEndpoint(endpoint),
  })
  const { id: subjectId, account_id: accountId, url, disabled_reason } = endpoint
  const failing_since = isoTime(endpoint.failing_since)
  const data = { id: subjectId, url, disabled_reason, failing_since }
  await publishEvents(platform, tx, [{ type: 'webhook_endpoint.disabled', accountId, subjectId, data }])
  return true
}

/** Disables an endpoint for the operator. Again changes nothing. Refuses with `not_found`. */
export async function disableByOperator(
  platform: Platform,
  endpointId: string,
  { actor, note }: { actor: string; note: string | null },
): Promise<{ endpoint: ShownEndpoint; changed: boolean }> {
  await getEndpoint(platform, null, endpointId)
  const changed = await platform.database.transaction((tx) =>
    disableEndpoint(platform, tx, { endpointId, reason: 'operator', actor, note }),
  )
  return { endpoint: await getEndpoint(platform, null, endpointId), changed }
}

/** The types of events that each of these accounts has an enabled endpoint for; accounts without one are missing. */
export async function subscriptionsOf(db: Queries, accountIds: readonly string[]) {
  const endpoints = await enabledEndpoints(db, [...new Set(accountIds)])
  const byAccount = new Map<string, ReadonlySet<string>>()
  for (const endpoint of endpoints) {
    const others = byAccount.get(endpoint.account_id) ?? []
    byAccount.set(endpoint.account_id, new Set([...others, ...eventTypesOf(endpoint)]))
  }
  return byAccount
}

export function eventTypesOf({ events }: Pick<EndpointRow, 'events'>): Set<string> {
  return new Set(JSON.parse(events))
}

async function lockEndpoint(tx: Tx, accountId: string, endpointId: string) {
  const key = { id: endpointId, account_id: accountId, removed_at: null }
  const [endpoint] = await lockRows(tx, 'webhook_endpoints', key)
  if (!endpoint) throw endpointNotFound()
  return endpoint
}

async function showEndpoint(platform: Platform, db: Queries, row: EndpointRow) {
  const [shown] = await showEndpoints(platform, db, [row])
  return shown as ShownEndpoint
}

async function showEndpoints({ clock }: Platform, db: Queries, rows: readonly EndpointRow[]) {
  const ids = rows.map(({ id }) => id)
  const former = (await secretsOf(db, ids)).filter(({ valid_until }) => (valid_until ?? 0) > clock.now())
  return rows.map((row) => {
    const newest = former.find(({ endpoint_id }) => endpoint_id === row.id)
    return { ...row, formerSecretUntil: newest?.valid_until ?? null }
  })
}

function checkedUrl({ config }: Platform, text: string): string {
  const check = checkEndpointUrl(text, { allowLoopback: config.NODE_ENV !== 'production' })
  if (check.ok) return check.url
  throw invalidFields([{ path: 'url', message: check.message }])
}

/** The events as they are stored. */
function checkedEvents(role: Role, events: readonly string[]): string {
  const message = `must be an event for a ${role}: ${EVENTS_OF[role].join(', ')}`
  const issues = events.flatMap((event, index) =>
    EVENTS_OF[role].includes(event) ? [] : [{ path: `events.${index}`, message }],
  )
  if (issues.length > 0) throw invalidFields(issues)
  return JSON.stringify(events)
}

function audit(
  platform: Platform,
  tx: Tx,
  actor: string,
  action: 'create' | 'update' | 'remove' | 'rotate' | 'disable',
  subjectId: string,
  change: Pick<AuditRecord, 'before' | 'after' | 'reason'>,
): Promise<void> {
  const subject = { subjectType: 'webhook_endpoint', subjectId }
  return recordAudit(platform, tx, { actor, action: `webhook_endpoint.${action}`, ...subject, ...change })
}

/** Without path and query of the address, which can hold a secret. */
function auditedEndpoint({ account_id, url, events, disabled_at, disabled_reason }: EndpointRow) {
  const { origin } = new URL(url)
  return { account_id, origin, events: JSON.parse(events), enabled: disabled_at === null, disabled_reason }
}

export function endpointNotFound(): Refusal {
  return new Refusal('not_found', 'Webhook endpoint not found.')
}
