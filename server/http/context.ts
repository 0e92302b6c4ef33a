import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ClickRecorder } from '../clicks/clicks.service.ts'
import type { InboxRecorder } from '../inbox/intake.service.ts'
import type { Actor, RequestContext } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import type { SignatureScheme } from '../processor/signatures/hmac.ts'
import { actorFromToken } from '../users/sessions.service.ts'
import { sessionCookieOf } from './session-cookie.ts'

/** What the composition root passes to the web edge. */
export interface HttpApp {
  platform: Platform
  clicks: ClickRecorder
  inbox: InboxRecorder
  /** How the processor signs its events. Any of the secrets may match. */
  processorSignature: { scheme: SignatureScheme; secrets: readonly string[] }
  /** Names of the migrations that are not applied yet. */
  pendingMigrations(): Promise<string[]>
  /** Whether the process is about to stop: it still serves requests, but is not ready for more. */
  isDraining?(): boolean
  /** How far this process's clock is ahead of the database's, ms. */
  clockSkew?(): number
  /** The file that `/client.tgz` answers; the client package beside the service's code unless given. */
  clientPackage?: string
  /** Adds routes and hooks, for development. */
  extend?(server: FastifyInstance): void
  /** Why this process cannot write; `null` when it can. */
  writeFailure?(): unknown
}

const BEARER = /^Bearer +(\S+) *$/i

/**
 * The context of a request's procedures. The token is looked up once, when a procedure first needs the caller. An unknown or
 * expired token counts as no token: public procedures still answer, the others refuse with `unauthenticated`. With `reply`,
 * the session may be in a cookie.
 */
export function contextOf(platform: Platform, request: FastifyRequest, reply?: FastifyReply): RequestContext {
  let actor: Promise<Actor | null> | undefined
  const cookie = reply && sessionCookieOf(platform, request, reply)
  const token = cookie ? cookie.token : BEARER.exec(request.headers.authorization ?? '')?.[1]
  return {
    platform,
    requestId: request.id,
    clientAddress: request.ip,
    agent: request.headers['user-agent'],
    idempotencyKey: request.headers['idempotency-key']?.toString(),
    actor: () => {
      actor ??= token === undefined ? Promise.resolve(null) : actorFromToken(platform, token)
      return actor
    },
    ...(cookie && { sessionCookie: cookie }),
  }
}
