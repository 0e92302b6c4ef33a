import { sql } from 'kysely'
import { DAY_MS } from '../../shared/durations.ts'
import type { ApiKeyScope } from '../../shared/schemas/users.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import { NOT_LOGGED_IN, type SessionActor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Tx } from '../platform/database/database.ts'
import { deleteRows, insertRow, lockRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { requireFreshSession } from './second-factor.service.ts'
import { createApiKeyToken } from './sessions.service.ts'
import { checkQuota } from './users.service.ts'
import { type ApiKeyRow, countApiKeys, findApiKeys } from './users.store.ts'

export const API_KEY_QUOTA = {
  most: 20,
  detail: 'At most 20 API keys per account. Delete one before you create another.',
}

/** Refuses with `step_up_required` a session without a step-up in the last 10 minutes; while the second factor is off, a log-in counts too. */
export function requireKeyMaker(platform: Platform, { userId, sessionId }: SessionActor): Promise<void> {
  return requireFreshSession(platform, userId, sessionId, { always: true })
}

interface NewApiKey {
  name: string
  scope: ApiKeyScope
  expiresInDays?: number | undefined
}

/**
 * Creates an API key of the caller, which only this answer shows, mails them, and deletes their expired keys. `requireKeyMaker` must have
 * admitted the session. Refuses with `quota_exceeded`, and with `unauthenticated` when the session has ended meanwhile.
 */
export function createApiKey(
  platform: Platform,
  { userId, sessionId }: SessionActor,
  { name, scope, expiresInDays }: NewApiKey,
): Promise<ApiKeyRow & { key: string }> {
  const { key, hash, last4 } = createApiKeyToken()
  return platform.database.transaction(async (tx) => {
    const now = platform.clock.now()
    await deleteRows(tx, 'api_keys', sql`user_id = ${userId} and expires_at <= ${now}`)
    await checkQuota(tx, userId, { ...API_KEY_QUOTA, count: () => countApiKeys(tx, userId) })
    // A suspension or password reset ends sessions and keys; none may be added behind it.
    const [session] = await lockRows(tx, 'sessions', { id: sessionId, user_id: userId })
    if (!session) throw new Refusal('unauthenticated', NOT_LOGGED_IN)
    const row = await insertRow(tx, 'api_keys', {
      id: platform.ids.next(),
      user_id: userId,
      name,
      scope,
      token_hash: hash,
      last4,
      created_at: now,
      expires_at: expiresInDays === undefined ? null : now + expiresInDays * DAY_MS,
      last_used_at: null,
    })
    const facts = { at: now, name, scope, last4, expires_at: row.expires_at }
    await sendMail(platform, tx, { userId, kind: 'api_key_created', facts })
    await audit(platform, tx, 'user.create_api_key', row)
    return { ...row, key }
  })
}

/** A user's API keys that have not expired, newest first. Refuses a cursor that is not this list's with `validation_failed`. */
export function listApiKeys({ database, clock }: Platform, userId: string, page: PageRequest) {
  return pageById(page, (request) => findApiKeys(database.reader, userId, { now: clock.now(), ...request }))
}

/** Ends one of a user's API keys. Refuses with `not_found`, also for another user's. */
export async function deleteApiKey(platform: Platform, userId: string, id: string): Promise<void> {
  await platform.database.transaction(async (tx) => {
    const [row] = await deleteRows(tx, 'api_keys', { id, user_id: userId })
    if (!row) throw new Refusal('not_found', 'API key not found.')
    await audit(platform, tx, 'user.delete_api_key', row)
  })
}

function audit(
  platform: Platform,
  tx: Tx,
  action: 'user.create_api_key' | 'user.delete_api_key',
  { id, user_id, name, scope, last4, expires_at }: ApiKeyRow,
): Promise<void> {
  const shown = { name, scope, last4, expires_at }
  return recordAudit(platform, tx, {
    actor: user_id,
    action,
    subjectType: 'api_key',
    subjectId: id,
    ...(action === 'user.create_api_key' ? { after: shown } : { before: shown }),
  })
}
