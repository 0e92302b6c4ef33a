import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { knownTarget, type RedirectTarget, resolveTarget } from '../links/links.service.ts'
import { Refusal } from '../platform/refusal.ts'
import { sendGone } from './errors.ts'
import { type Answered, answerDirectly, type DirectAnswer, head, refuseWith } from './hot-requests.ts'
import type { HttpApp } from './http-app.ts'
import type { SecurityHeaders } from './security-headers.ts'

interface RedirectApp extends Pick<HttpApp, 'platform' | 'clicks'> {
  headers: SecurityHeaders
  answeredOn(route: string): Answered
}

interface Redirects extends RedirectApp {
  answer: DirectAnswer
}

const ROUTE = '/go/:slug'

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
  const fixed = { ...app.headers.few, 'cache-control': 'no-store', 'referrer-policy': REFERRER_POLICY }
  const redirects: Redirects = { ...app, answer: answerDirectly(app.answeredOn(ROUTE), fixed) }
  server.route<GoRoute>({
    method: ['GET', 'HEAD'],
    url: ROUTE,
    handler: (request, reply) => follow(redirects, request, reply),
  })
}

/** Without a promise where the link is cached, as it nearly always is: each costs as much as its share of the write. */
function follow(app: Redirects, request: FastifyRequest<GoRoute>, reply: FastifyReply): void {
  const { slug } = request.params
  const known = knownTarget(app.platform, slug)
  if (known !== undefined) {
    leadTo(app, known, request, reply)
    return
  }
  resolveTarget(app.platform, slug)
    .then((target) => leadTo(app, target, request, reply))
    .catch((error: unknown) => refuseWith(reply, error))
}

function leadTo(
  app: Redirects,
  target: RedirectTarget | null,
  request: FastifyRequest<GoRoute>,
  reply: FastifyReply,
): void {
  const { platform, clicks } = app
  if (!target) throw new Refusal('not_found', 'There is no such affiliate link.')
  if (target.state === 'gone') {
    const headed = head(request, reply, app.headers.all)
    sendGone(platform, request, headed, 'This affiliate link leads nowhere any more.')
    return
  }
  // The request's own: what is logged of a visit then leads to its click, and there is one id less to make.
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
  clicks.put(click, {
    done: () => sendOn(app, request, reply, location),
    failed: (error) => refuseWith(reply, error),
  })
}

function sendOn({ answer }: Redirects, request: FastifyRequest, reply: FastifyReply, location: string): void {
  const headers = ['location', location]
  if (request.method !== 'HEAD') headers.push('content-length', '0')
  try {
    answer(request, reply, { status: 302, headers })
  } catch (error) {
    refuseWith(reply, error)
  }
}
