import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { knownTarget, resolveTarget } from '../links/links.service.ts'
import { Refusal } from '../platform/refusal.ts'
import { sendGone } from './errors.ts'
import type { HttpApp } from './http-app.ts'

interface RedirectApp extends Pick<HttpApp, 'platform' | 'clicks'> {
  /** The headers of an answer that has a body, as 410 has. */
  ofBodies: Readonly<Record<string, string>>
}

interface GoRoute {
  Params: { slug: string }
}

/**
 * The shop is told the site that its visitor comes from, never the page: what browsers do by themselves, and what its
 * statistics expect.
 */
const REFERRER_POLICY = 'strict-origin-when-cross-origin'

/**
 * `GET` and `HEAD /go/:slug`, the hottest route: a cached look-up, one row in the next group commit, a redirect. The click
 * is on disk before the answer leaves; when it cannot be, the answer is 503 and nobody is sent on unseen.
 */
export function registerRedirect(server: FastifyInstance, app: RedirectApp): void {
  server.route<GoRoute>({
    method: ['GET', 'HEAD'],
    url: '/go/:slug',
    handler: (request, reply) => follow(app, request, reply),
  })
}

async function follow(
  { platform, clicks, ofBodies }: RedirectApp,
  request: FastifyRequest<GoRoute>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { slug } = request.params
  const target = knownTarget(platform, slug) ?? (await resolveTarget(platform, slug))
  if (!target) throw new Refusal('not_found', 'There is no such affiliate link.')
  if (target.state === 'gone')
    return sendGone(platform, request, reply.headers(ofBodies), 'This affiliate link leads nowhere any more.')
  const id = platform.ids.next()
  const tracked = target.state === 'tracked'
  await clicks.record({
    id,
    linkId: target.linkId,
    tracked,
    kind: clickKindOf(request.method, request.headers),
    createdAt: platform.clock.now(),
    address: request.ip,
    agent: request.headers['user-agent'],
  })
  return reply
    .code(302)
    .header('location', tracked ? target.beforeReference + id + target.afterReference : target.url)
    .header('referrer-policy', REFERRER_POLICY)
    .send()
}
