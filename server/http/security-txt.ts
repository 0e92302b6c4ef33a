import type { FastifyInstance } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'
import type { HttpApp } from './context.ts'
import type { RateLimits } from './rate-limit.ts'

/** RFC 9116 recommends less than a year. */
const VALID_MS = 180 * 24 * 3_600_000

/** `GET /.well-known/security.txt` (RFC 9116): where to report a vulnerability. 404 without SECURITY_CONTACT. */
export function registerSecurityTxt(
  server: FastifyInstance,
  { platform }: HttpApp,
  limits: RateLimits,
): void {
  const contact = platform.config.SECURITY_CONTACT
  server.get('/.well-known/security.txt', { onRequest: limits.admitPublic }, async (_request, reply) => {
    if (contact === undefined) throw new Refusal('not_found', 'This service names no security contact.')
    const expires = new Date(platform.clock.now() + VALID_MS).toISOString()
    return reply
      .type('text/plain; charset=utf-8')
      .send(`Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\n`)
  })
}
