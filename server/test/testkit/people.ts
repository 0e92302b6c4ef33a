import { TRPCError } from '@trpc/server'
import { sql } from 'kysely'
import type { Role } from '../../../shared/schemas/common.ts'
import type { ApiKeyScope } from '../../../shared/schemas/users.ts'
import { OPERATOR, recordAudit } from '../../flags/audit.service.ts'
import { sendMail } from '../../notifications/channels/mail/mail.service.ts'
import type { MailKind } from '../../notifications/channels/mail/mail-texts.ts'
import type { Actor, RequestContext, SessionActor } from '../../platform/api/procedure.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { insertRows, type NewRow, updateRows } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { createApiKeyToken, createToken } from '../../users/sessions.service.ts'
import { rowsOf } from './rows.ts'

/** A user with a verified address and without a usable password, and the actor that a request of theirs would have. */
export async function addUser(
  { clock, database, ids }: Platform,
  role: Role,
  display_name: string = role,
): Promise<SessionActor> {
  const [userId, now] = [ids.next(), clock.now()]
  const account = { id: userId, email: `${userId}@example.com`, password_hash: 'none', role, display_name }
  const row = { ...account, created_at: now, email_verified_at: now }
  await database.transaction((tx) => insertRows(tx, 'users', [row]))
  return { userId, role, sessionId: ids.next() }
}

/** Changes a user past the service. */
export async function changeUser(
  { database }: Platform,
  userId: string,
  change: Partial<NewRow<'users'>>,
): Promise<void> {
  await database.transaction((tx) => updateRows(tx, 'users', { id: userId }, change))
}

/** Opens the actor's session of this length in ms, and returns its bearer token. */
export async function logIn(platform: Platform, actor: Actor, lifetimeMs = 86_400_000): Promise<string> {
  const { token, hash } = createToken()
  const { userId: user_id, sessionId: id = platform.ids.next() } = actor
  const created_at = platform.clock.now()
  const row = {
    id,
    user_id,
    token_hash: hash,
    created_at,
    expires_at: created_at + lifetimeMs,
    setup_only: 0,
  }
  await platform.database.transaction((tx) => insertRows(tx, 'sessions', [row]))
  return token
}

/** Adds an API key that does not expire to a user's, and counts as used now. */
export async function addApiKey(
  platform: Platform,
  userId: string,
  scope: ApiKeyScope,
  name = 'a program',
): Promise<{ id: string; key: string }> {
  const { key, hash, last4 } = createApiKeyToken()
  const [id, now] = [platform.ids.next(), platform.clock.now()]
  const times = { created_at: now, expires_at: null, last_used_at: now }
  const row = { id, user_id: userId, name, scope, token_hash: hash, last4, ...times }
  await platform.database.transaction((tx) => insertRows(tx, 'api_keys', [row]))
  return { id, key }
}

/** Suspends or reinstates past the service's own conditions, but on record; for tests of what others make of it. */
export async function setSuspended(platform: Platform, userId: string, suspended: boolean): Promise<void> {
  await platform.database.transaction(async (tx) => {
    const updated = await updateRows(
      tx,
      'users',
      sql`id = ${userId} and (suspended_at is null) = ${sql.lit(suspended)}`,
      { suspended_at: suspended ? platform.clock.now() : null },
    )
    if (updated.length === 0) return
    const action = suspended ? 'user.suspend' : 'user.reinstate'
    await recordAudit(platform, tx, { actor: OPERATOR, action, subjectType: 'user', subjectId: userId })
  })
  platform.caches.drop('slug')
  platform.caches.drop('offers')
}

/** The request context of this actor (`null`: anonymous), for `router.createCaller`. */
export function requestOf(platform: Platform, actor: Actor | null): RequestContext {
  return { platform, actor, requestId: 'test', clientAddress: '127.0.0.1' }
}

/** The code that `work` is refused with; `ok` when it is not. Anything else that it throws is thrown on. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'ok'
  } catch (error) {
    const cause = error instanceof TRPCError ? (error.cause ?? error) : error
    if (cause instanceof Refusal) return cause.code
    if (error instanceof TRPCError && error.code === 'BAD_REQUEST') return 'validation_failed'
    throw error
  }
}

/** What the mails of one kind to a user say, oldest first. */
export async function mailFactsOf(
  platform: Platform,
  user_id: string,
  kind: MailKind,
): Promise<Record<string, unknown>[]> {
  return (await rowsOf(platform, 'mails', { user_id, kind })).map(({ facts }) => JSON.parse(facts))
}

/** Writes a mail to a user, and returns its id. */
export function queuedMail(platform: Platform, userId: string): Promise<string> {
  return platform.database.transaction(async (tx) => {
    const facts = { at: platform.clock.now(), by: 'owner' as const }
    await sendMail(platform, tx, { userId, kind: 'password_changed', facts })
    const newest = tx.selectFrom('mails').select('id').where('user_id', '=', userId).orderBy('id', 'desc')
    return (await newest.executeTakeFirstOrThrow()).id
  })
}
