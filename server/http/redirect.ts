import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { cachedTarget, type RedirectTarget, resolveTarget } from '../links/links.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { HttpApp } from './context.ts'
import { sendError } from './errors.ts'
import { setShortHeaders } from './security-headers.ts'

type RedirectApp = Pick<HttpApp, 'platform' | 'clicks'>

interface GoRoute {
  Params: { slug: string }
}

/** The browsers' default: shops see the site that a visitor comes from, not the page. */
const REFERRER_POLICY = 'strict-origin-when-cross-origin'

/**
 * `GET` and `HEAD /go/:slug`: looks up the link (cached), records the click in the next group commit, redirects. The
 * response leaves once the click is on disk; if it cannot be written, the response is 503.
 */
export function registerRedirect(server: FastifyInstance, app: RedirectApp): void {
  server.route<GoRoute>({
    method: ['GET', 'HEAD'],
    url: '/go/:slug',
    handler: (request, reply) => follow(app, request, reply),
  })
}

/** Uses no promise if the link is cached: promises are a measurable part of a redirect's time. */
function follow(app: RedirectApp, request: FastifyRequest<GoRoute>, reply: FastifyReply): void {
  const { slug } = request.params
  const known = cachedTarget(app.platform, slug)
  if (known !== undefined) {
    recordAndRedirect(app, known, request, reply)
    return
  }
  resolveTarget(app.platform, slug)
    .then((target) => recordAndRedirect(app, target, request, reply))
    .catch((error: unknown) => sendError(reply, error))
}

function recordAndRedirect(
  app: RedirectApp,
  target: RedirectTarget | null,
  request: FastifyRequest<GoRoute>,
  reply: FastifyReply,
): void {
  const { platform, clicks } = app
  if (!target) throw new Refusal('not_found', 'Affiliate link not found.')
  if (target.state === 'gone') throw new Refusal('gone', 'This affiliate link is no longer active.')
  // The click has the request's id, so log lines of a visit lead to its click.
  const { id } = request
  const kind = clickKindOf(request.method, request.headers)
  const tracked = target.state === 'tracked' && kind !== 'embedded'
  const click = {
    id,
    linkId: target.linkId,
    tracked,
    kind,
    createdAt: platform.clock.now(),
    address: request.ip,
    agent: request.headers['user-agent'],
  }
  const location = tracked ? target.beforeReference + id + target.afterReference : target.url
  clicks.record(click).then(
    () => sendRedirect(request, reply, location),
    (error: unknown) => sendError(reply, error),
  )
}

/** Does not throw: it is called by the group commit. */
function sendRedirect(request: FastifyRequest, reply: FastifyReply, location: string): void {
  try {
    setShortHeaders(request, reply).header('referrer-policy', REFERRER_POLICY).redirect(location, 302)
  } catch (error) {
    sendError(reply.removeHeader('location'), error)
  }
}
