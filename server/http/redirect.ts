import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { knownTarget, type RedirectTarget, resolveTarget } from '../links/links.service.ts'
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

/** Without a promise where the link is cached, as it nearly always is: each costs as much as its share of the write. */
function follow(app: RedirectApp, request: FastifyRequest<GoRoute>, reply: FastifyReply): void {
  const { slug } = request.params
  const known = knownTarget(app.platform, slug)
  if (known !== undefined) {
    leadTo(app, known, request, reply)
    return
  }
  resolveTarget(app.platform, slug)
    .then((target) => leadTo(app, target, request, reply))
    .catch((error: unknown) => refuse(reply, error))
}

function leadTo(
  { platform, clicks, ofBodies }: RedirectApp,
  target: RedirectTarget | null,
  request: FastifyRequest<GoRoute>,
  reply: FastifyReply,
): void {
  if (!target) throw new Refusal('not_found', 'There is no such affiliate link.')
  if (target.state === 'gone') {
    sendGone(platform, request, reply.headers(ofBodies), 'This affiliate link leads nowhere any more.')
    return
  }
  const id = platform.ids.next()
  const tracked = target.state === 'tracked'
  const click = {
    id,
    linkId: target.linkId,
    tracked,
    kind: clickKindOf(request.method, request.headers),
    createdAt: platform.clock.now(),
    address: request.ip,
    agent: request.headers['user-agent'],
  }
  const location = tracked ? target.beforeReference + id + target.afterReference : target.url
  clicks.put(click, {
    done: () => sendOn(reply, location),
    failed: (error) => refuse(reply, error),
  })
}

function sendOn(reply: FastifyReply, location: string): void {
  try {
    reply.code(302).header('location', location).header('referrer-policy', REFERRER_POLICY).send()
  } catch (error) {
    refuse(reply, error)
  }
}

/** As an error that is thrown in a handler: to whom it may concern knows the error handler. */
function refuse(reply: FastifyReply, error: unknown): void {
  reply.send(error instanceof Error ? error : new Error(String(error)))
}
