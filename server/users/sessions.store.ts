import type { Role } from '../../shared/schemas/common.ts'
import type { Queries, Tx } from '../platform/database.ts'

export interface SessionRow {
  id: string
  user_id: string
  token_hash: string
  created_at: number
  expires_at: number
}

export async function insertSession(tx: Tx, row: SessionRow): Promise<void> {
  await tx.insertInto('sessions').values(row).execute()
}

export interface SessionHolder {
  session_id: string
  user_id: string
  role: Role
}

/** The holder of a session that has not expired at `now` and whose account is not suspended. */
export function findSessionHolder(
  db: Queries,
  tokenHash: string,
  now: number,
): Promise<SessionHolder | undefined> {
  return db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select(['sessions.id as session_id', 'users.id as user_id', 'users.role as role'])
    .where('sessions.token_hash', '=', tokenHash)
    .where('sessions.expires_at', '>', now)
    .where('users.suspended_at', 'is', null)
    .executeTakeFirst()
}

/** Whether a session has neither ended nor expired at `now`, and its account is not suspended. */
export async function isSessionOpen(
  db: Queries,
  userId: string,
  sessionId: string,
  now: number,
): Promise<boolean> {
  const row = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select('sessions.id')
    .where('sessions.id', '=', sessionId)
    .where('sessions.user_id', '=', userId)
    .where('sessions.expires_at', '>', now)
    .where('users.suspended_at', 'is', null)
    .executeTakeFirst()
  return row !== undefined
}

export async function deleteSession(tx: Tx, userId: string, sessionId: string): Promise<void> {
  await tx.deleteFrom('sessions').where('id', '=', sessionId).where('user_id', '=', userId).execute()
}

export async function deleteExpiredSessions(tx: Tx, userId: string, now: number): Promise<void> {
  await tx.deleteFrom('sessions').where('user_id', '=', userId).where('expires_at', '<=', now).execute()
}

/** All sessions of a user, but for one that is to stay. */
export async function deleteSessions(tx: Tx, userId: string, except: string | null): Promise<void> {
  let query = tx.deleteFrom('sessions').where('user_id', '=', userId)
  if (except !== null) query = query.where('id', '<>', except)
  await query.execute()
}
