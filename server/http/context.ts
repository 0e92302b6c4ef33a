import type { FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import type { Actor, RequestContext } from '../platform/procedure.ts'
import { authenticate } from '../users/users.service.ts'

const BEARER = /^Bearer +(\S+) *$/i

/**
 * A request as procedures see it. The token is looked up once, when the first procedure asks who calls. An unknown or
 * expired token counts as none: public procedures answer, the others refuse with `unauthenticated`.
 */
export function contextOf(platform: Platform, request: FastifyRequest): RequestContext {
  let actor: Promise<Actor | null> | undefined
  return {
    platform,
    requestId: request.id,
    clientAddress: request.ip,
    actor: () => {
      actor ??= holderOf(platform, request.headers.authorization)
      return actor
    },
  }
}

/** Who calls, looked up once a request. */
export async function identify({ actor }: RequestContext): Promise<Actor | null> {
  return typeof actor === 'function' ? actor() : actor
}

/** Whose session an Authorization header names; `null` without one, or with one that names none. */
async function holderOf(platform: Platform, authorization: string | undefined): Promise<Actor | null> {
  const token = BEARER.exec(authorization ?? '')?.[1]
  return token === undefined ? null : authenticate(platform, token)
}
