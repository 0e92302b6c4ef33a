import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { knownTarget, type RedirectTarget, resolveTarget } from '../links/links.service.ts'
import { Refusal } from '../platform/refusal.ts'
import { sendGone } from './errors.ts'
import { type Answered, head } from './hot-requests.ts'
import type { HttpApp } from './http-app.ts'
import type { SecurityHeaders } from './security-headers.ts'

interface RedirectApp extends Pick<HttpApp, 'platform' | 'clicks'> {
  headers: SecurityHeaders
  answeredOn(route: string): Answered
}

interface Redirects extends RedirectApp {
  answered: Answered
  /** Names and values of what every redirect is headed by, one after the other. */
  fixed: readonly string[]
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
  const redirects: Redirects = {
    ...app,
    answered: app.answeredOn(ROUTE),
    fixed: Object.entries(fixed).flat(),
  }
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
    .catch((error: unknown) => refuse(reply, error))
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
    done: () => sendOn(app, request, reply, location),
    failed: (error) => refuse(reply, error),
  })
}

/**
 * By Node's own means: the framework would gather the headers one by one and look for hooks and a body, which took a tenth of the whole
 * request. What its hooks do for other answers, `answered` does.
 */
function sendOn(
  { fixed, answered }: Redirects,
  request: FastifyRequest,
  reply: FastifyReply,
  location: string,
): void {
  const headers = [...fixed, 'x-request-id', request.id, 'location', location]
  if (request.method !== 'HEAD') headers.push('content-length', '0')
  try {
    reply.raw.writeHead(302, headers).end()
  } catch (error) {
    refuse(reply, error)
    return
  }
  answered(request, reply)
}

/** As an error that is thrown in a handler: to whom it may concern knows the error handler. */
function refuse(reply: FastifyReply, error: unknown): void {
  reply.send(error instanceof Error ? error : new Error(String(error)))
}
