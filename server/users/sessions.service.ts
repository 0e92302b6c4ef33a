import { createHash, randomBytes } from 'node:crypto'
import type { Actor } from '../platform/api/procedure.ts'
import type { Tx } from '../platform/database/database.ts'
import { entities } from '../platform/database/entities.ts'
import type { Platform } from '../platform/platform.ts'
import { findSessionActor, isSessionOpen } from './users.store.ts'

const SESSION_MS = 30 * 24 * 60 * 60 * 1000
/** 32 bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export interface NewToken {
  /** For the client. It is not stored. */
  token: string
  /** For the table: SHA-256, hex. A random token needs no slow hash. */
  hash: string
}

export function createToken(): NewToken {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: sha256(token) }
}

/** The hash to find a token by; `null` for text that cannot be a token. */
export function hashOfToken(token: string): string | null {
  return TOKEN.test(token) ? sha256(token) : null
}

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** The user and session of a bearer token; `null` when it is malformed, unknown, expired or ended, or its user is suspended. */
export async function actorFromToken(platform: Platform, token: string): Promise<Actor | null> {
  const hash = hashOfToken(token)
  if (hash === null) return null
  const found = await findSessionActor(platform.database.reader, hash, platform.clock.now())
  return found ? { userId: found.user_id, role: found.role, sessionId: found.session_id } : null
}

/** Whether the actor's session is still valid, for connections that stay open. */
export function isSessionActive(platform: Platform, actor: Actor): Promise<boolean> {
  return isSessionOpen(platform.database.reader, actor.userId, actor.sessionId, platform.clock.now())
}

/** Opens a session of 30 days and deletes the user's expired ones. `expiresAt` is in epoch ms. */
export async function openSession(
  platform: Platform,
  tx: Tx,
  userId: string,
): Promise<{ token: string; expiresAt: number }> {
  const { em, Session } = await entities(tx)
  const { token, hash } = createToken()
  const now = platform.clock.now()
  await em.nativeDelete(Session, { user_id: userId, expires_at: { $lte: now } })
  const expiresAt = now + SESSION_MS
  const times = { created_at: now, expires_at: expiresAt }
  em.create(Session, { id: platform.ids.next(), user_id: userId, token_hash: hash, ...times })
  return { token, expiresAt }
}

/** Ends a user's sessions, except one if given. */
export async function endSessions(tx: Tx, userId: string, except?: string): Promise<void> {
  const { em, Session } = await entities(tx)
  await em.nativeDelete(Session, {
    user_id: userId,
    ...(except !== undefined && { id: { $ne: except } }),
  })
}
