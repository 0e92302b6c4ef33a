import type { FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import type { Actor, RequestContext } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { authenticate } from '../users/users.service.ts'

const BEARER = /^Bearer +(\S+) *$/i

/** A request as procedures see it. The token is looked up once, when the first procedure asks who calls. */
export function contextOf(platform: Platform, request: FastifyRequest): RequestContext {
  let actor: Promise<Actor | null> | undefined
  return {
    platform,
    requestId: request.id,
    clientAddress: request.ip,
    actor: () => {
      actor ??= actorOf(platform, request.headers.authorization)
      return actor
    },
  }
}

/**
 * Nobody without the header. A credential that is presented and not valid is refused on public procedures too: a
 * client whose session has ended must hear of it, instead of silently seeing what everybody sees.
 */
async function actorOf(platform: Platform, authorization: string | undefined): Promise<Actor | null> {
  if (authorization === undefined) return null
  const actor = await holderOf(platform, authorization)
  if (actor) return actor
  throw new Refusal('unauthenticated', 'The bearer token is not valid, or not any more: log in again.')
}

/** Whose session an Authorization header names; `null` without one, or with one that names none (any more). */
export async function holderOf(platform: Platform, authorization: string | undefined): Promise<Actor | null> {
  const token = BEARER.exec(authorization ?? '')?.[1]
  return token === undefined ? null : authenticate(platform, token)
}
