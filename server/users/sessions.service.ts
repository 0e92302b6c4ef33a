import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { HOUR_MS } from '../../shared/durations.ts'
import type { Role } from '../../shared/schemas/common.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import type { Actor, SessionActor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { sha256 } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { deleteRows, insertRow, TamperedRow, updateRows } from '../platform/database/protected-rows.ts'
import { addressPrefix } from '../platform/network/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import { type Credential, findCredential, findOpenSessions, setUsed } from './users.store.ts'

export type { SessionRow } from './users.store.ts'

const SESSION_MS = 30 * 24 * HOUR_MS
const ADMIN_SESSION_MS = 12 * HOUR_MS
/** How old `last_used_at` may become. */
const USE_MS = 60 * 1000
const MAX_AGENT = 120
/** Updates of `last_used_at` under way; further ones are left out while the database takes no writes. */
const MAX_UPDATES = 100
/** How long a step-up holds. */
const FRESH_MS = 10 * 60 * 1000
/** 32 bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** What an API key begins with, in front of such a token. A session's token is too short to be one. */
const API_KEY_PREFIX = 'afk_'
const API_KEY_LENGTH = API_KEY_PREFIX.length + 43

/** A token for the client, and what is stored of it: a random token needs no slow hash. */
export function createToken() {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: sha256(token) }
}

/** The hash to find a token by; `null` for text that cannot be a token. */
export function hashOfToken(token: string): string | null {
  return TOKEN.test(token) ? sha256(token) : null
}

/** A new API key, which is not stored, with what is stored of it. */
export function createApiKeyToken() {
  const { token, hash } = createToken()
  return { key: API_KEY_PREFIX + token, hash, last4: token.slice(-4) }
}

/**
 * The user of a bearer token with the session or API key that it belongs to; `null` when it is malformed, unknown, expired or ended, or its
 * user is suspended.
 */
export async function actorFromToken(platform: Platform, token: string): Promise<Actor | null> {
  if (token.length === API_KEY_LENGTH && token.startsWith(API_KEY_PREFIX)) {
    const found = await credentialFromToken(platform, 'api_keys', token.slice(API_KEY_PREFIX.length))
    if (!found) return null
    const { credential, user } = found
    noteUse(platform, 'api_keys', credential)
    return { userId: user.id, role: user.role, apiKey: { id: credential.id, scope: credential.scope } }
  }
  const found = await credentialFromToken(platform, 'sessions', token)
  if (!found) return null
  const { credential, user } = found
  const { id, last_used_at, created_at } = credential
  noteUse(platform, 'sessions', { id, last_used_at: last_used_at ?? created_at })
  return {
    userId: user.id,
    role: user.role,
    sessionId: id,
    ...(credential.setup_only === 1 && { setupOnly: true }),
  }
}

async function credentialFromToken<T extends Credential>(platform: Platform, table: T, token: string) {
  const tokenHash = hashOfToken(token)
  return tokenHash === null ? null : credentialOf(platform, table, { tokenHash })
}

/** `null` also when the session, key or user was changed outside of the service, which is flagged. */
async function credentialOf<T extends Credential>(
  platform: Platform,
  table: T,
  by: Parameters<typeof findCredential>[3],
) {
  try {
    return await findCredential(platform.database.reader, platform.keys, table, by, platform.clock.now())
  } catch (error) {
    if (!(error instanceof TamperedRow)) throw error
    await platform.reportTampered(error)
    return null
  }
}

const updating = new Set<string>()

/** Updates `last_used_at` if it is a minute old. The request does not wait for it, and succeeds without it. */
function noteUse(
  platform: Platform,
  table: Credential,
  { id, last_used_at }: { id: string; last_used_at: number | null },
): void {
  const now = platform.clock.now()
  const isRecent = last_used_at !== null && now < last_used_at + USE_MS
  if (isRecent || updating.has(id) || updating.size >= MAX_UPDATES) return
  updating.add(id)
  platform.database
    .transaction((tx) => setUsed(tx, table, id, now))
    .catch((error: unknown) =>
      platform.log.debug({ err: error }, 'the use of a session or API key was not recorded'),
    )
    .finally(() => updating.delete(id))
}

/** Whether the actor's session or API key is still valid, for connections that stay open. */
export async function isActorActive(
  platform: Platform,
  { userId, sessionId, apiKey }: Actor,
): Promise<boolean> {
  const [table, id] = apiKey ? (['api_keys', apiKey.id] as const) : (['sessions', sessionId] as const)
  return id !== undefined && (await credentialOf(platform, table, { userId, id })) !== null
}

/** Where a log-in comes from. */
export interface Origin {
  /** The client's network address. */
  address?: string | undefined
  /** The client's `User-Agent`. */
  agent?: string | undefined
}

/** Whether the rules for admins in production hold for an account: a second factor, and sessions of 12 hours. */
export function isProductionAdmin({ config }: Pick<Platform, 'config'>, { role }: { role: Role }): boolean {
  return role === 'admin' && config.NODE_ENV === 'production'
}

export interface OpenedSession {
  userId: string
  /** The bearer token, which is not stored. */
  token: string
  /** Epoch ms. */
  expiresAt: number
  /** The session can only set up a second factor. */
  setupOnly: boolean
}

/** Opens a session of 30 days, for an admin in production 12 hours, and deletes the user's expired ones. */
export async function openSession(
  platform: Platform,
  tx: Tx,
  user: { id: string; role: Role },
  { address = '', agent }: Origin,
  setupOnly = false,
): Promise<OpenedSession> {
  const { token, hash } = createToken()
  const now = platform.clock.now()
  const prefix = addressPrefix(address)
  await deleteRows(tx, 'sessions', sql`user_id = ${user.id} and expires_at <= ${now}`)
  const expiresAt = now + (isProductionAdmin(platform, user) ? ADMIN_SESSION_MS : SESSION_MS)
  await insertRow(tx, 'sessions', {
    id: platform.ids.next(),
    user_id: user.id,
    token_hash: hash,
    created_at: now,
    expires_at: expiresAt,
    last_used_at: now,
    address_prefix: prefix === 'unknown' ? null : prefix,
    agent: keptAgent(agent),
    setup_only: setupOnly ? 1 : 0,
  })
  return { userId: user.id, token, expiresAt, setupOnly }
}

/** Printable ASCII only: clients choose this text, and it is shown at terminals. */
function keptAgent(agent = ''): string | null {
  const text = agent.replace(/[^\x20-\x7e]+/g, ' ').trim()
  return text.slice(0, MAX_AGENT) || null
}

/** A user's open sessions, newest first. Refuses a cursor that is not this list's with `validation_failed`. */
export function listSessions({ database, clock }: Platform, userId: string, page: PageRequest) {
  return pageById(page, (request) =>
    findOpenSessions(database.reader, userId, { now: clock.now(), ...request }),
  )
}

/** Makes a session fresh for 10 minutes. */
export async function markSessionFresh(
  platform: Platform,
  tx: Tx,
  { userId: user_id, sessionId: id }: SessionActor,
): Promise<void> {
  await updateRows(tx, 'sessions', { id, user_id }, { fresh_until: platform.clock.now() + FRESH_MS })
}

/** Whether a session of this user had a step-up in the last 10 minutes; with `orLogin`, or was opened by a log-in since then. */
export async function isSessionFresh(
  platform: Platform,
  userId: string,
  id: string,
  { orLogin = false } = {},
): Promise<boolean> {
  const found = await credentialOf(platform, 'sessions', { userId, id })
  if (!found) return false
  const { fresh_until, created_at } = found.credential
  const until = Math.max(fresh_until ?? 0, orLogin ? created_at + FRESH_MS : 0)
  return until > platform.clock.now()
}

/** Ends one of a user's sessions. Refuses with `not_found`, also for another user's. */
export async function endSession(tx: Tx, userId: string, sessionId: string): Promise<void> {
  const [ended] = await deleteRows(tx, 'sessions', { id: sessionId, user_id: userId })
  if (!ended) throw new Refusal('not_found', 'Session not found.')
}

/** Ends a user's sessions, except one if given; returns how many. */
export async function endSessions(tx: Tx, userId: string, except?: string): Promise<number> {
  const others = except === undefined ? sql`` : sql` and id <> ${except}`
  return (await deleteRows(tx, 'sessions', sql`user_id = ${userId}${others}`)).length
}

/** Ends a user's API keys; returns how many. */
export async function endApiKeys(tx: Tx, userId: string): Promise<number> {
  return (await deleteRows(tx, 'api_keys', { user_id: userId })).length
}

/** Ends the caller's session. */
export async function logout({ database }: Platform, { userId, sessionId }: SessionActor): Promise<void> {
  await database.transaction((tx) => deleteRows(tx, 'sessions', { id: sessionId, user_id: userId }))
}

/** Ends one of the caller's sessions. Refuses with `not_found`. */
export async function endOwnSession(
  { database }: Platform,
  { userId }: Actor,
  sessionId: string,
): Promise<void> {
  await database.transaction((tx) => endSession(tx, userId, sessionId))
}

/** Ends all of the caller's sessions but this one. */
export async function endOtherSessions(
  { database }: Platform,
  { userId, sessionId }: SessionActor,
): Promise<void> {
  await database.transaction((tx) => endSessions(tx, userId, sessionId))
}
