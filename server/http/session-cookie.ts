import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SessionCookie } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'

/**
 * The session in a cookie that scripts cannot read, for pages of the service itself; `null` unless the request has
 * `X-Session: cookie` and no `Authorization`. Pages of other origins cannot send that header, since CORS never allows it, so a
 * cookie that their requests carry has no effect.
 */
export function sessionCookieOf(
  { publicBaseUrl, clock }: Platform,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): (SessionCookie & { token: string | undefined }) | null {
  if (headers['x-session'] !== 'cookie' || headers.authorization !== undefined) return null
  const isSecure = publicBaseUrl.startsWith('https:')
  const name = isSecure ? '__Host-session' : 'session'
  const set = (value: string, maxAge: number) =>
    void reply.header(
      'set-cookie',
      `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
    )
  return {
    // The length of a session's token: an API key is longer.
    token: new RegExp(`(?:^|; *)${name}=([\\w-]{43})(?:;|$)`).exec(headers.cookie ?? '')?.[1],
    // Relative, since the clock of the browser may be wrong.
    keep: (token, expiresAt) => set(token, Math.floor((expiresAt - clock.now()) / 1000)),
    clear: () => set('', 0),
  }
}
