import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clickKindOf } from '../clicks/click-kind.ts'
import { readVisitQuery, withForwarded } from '../links/forwarded-query.rule.ts'
import { cachedTarget, lastTarget, type RedirectTarget, resolveTarget } from '../links/links.service.ts'
import { canBeSlug, queryOf, readTypedLink, type TypedLink } from '../links/slug.rule.ts'
import { refusalOf } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { HttpApp } from './context.ts'
import { problemAt, sendProblem } from './errors.ts'
import { isDeadLink, sendLinkPage } from './link-pages.ts'
import { acceptsHtml } from './pages.ts'
import { setDefaultHeaders, setShortHeaders } from './security-headers.ts'

type RedirectApp = Pick<HttpApp, 'platform' | 'clicks'>

interface GoRoute {
  Params: { slug: string }
}

/** A request for a link, while it is answered. */
interface Visit {
  app: RedirectApp
  request: FastifyRequest
  reply: FastifyReply
  /** Without `?`. */
  query: string
}

/** The browsers' default: shops see the site that a visitor comes from, not the page. */
const REFERRER_POLICY = 'strict-origin-when-cross-origin'
const NO_QUERY = { forwarded: '', subId: null }

/**
 * `GET` and `HEAD /go/:slug`: looks up the link (cached), records the click in the next group commit, redirects. The response leaves once
 * the click is on disk. If it cannot be written, the visitor reaches the product page without a reference.
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
    recordAndRedirect({ app, request, reply, query: queryOf(request.url) }, known)
  } else if (canBeSlug(slug)) {
    lookUp(app, { slug, query: queryOf(request.url) }, request, reply)
  } else if (!followTyped(app, request, reply)) {
    lookUp(app, { slug: null, query: '' }, request, reply)
  }
}

/** Follows a link whose address is not exactly `/go/SLUG`: `//Go/SLUG.`, `/go/slug&brid=x`. Returns `false` for any other address. */
export function followTyped(app: RedirectApp, request: FastifyRequest, reply: FastifyReply): boolean {
  const typed = ['GET', 'HEAD'].includes(request.method) ? readTypedLink(request.url) : null
  if (typed) lookUp(app, typed, request, reply)
  return typed !== null
}

function lookUp(app: RedirectApp, link: TypedLink, request: FastifyRequest, reply: FastifyReply): void {
  const { slug, query } = link
  const visit = { app, request, reply, query }
  if (slug === null) {
    recordAndRedirect(visit, null)
    return
  }
  resolveTarget(app.platform, slug)
    .then(
      (target) => recordAndRedirect(visit, target),
      (error: unknown) => redirectWithoutClick(visit, lastTarget(app.platform, slug), error),
    )
    .catch((error: unknown) => refuse(visit, error))
}

function recordAndRedirect(visit: Visit, target: RedirectTarget | null): void {
  const { app, request, query } = visit
  if (!target) {
    refuse(visit, new Refusal('not_found', 'Affiliate link not found.'))
    return
  }
  if (target.state === 'gone') {
    refuse(visit, new Refusal('gone', 'This affiliate link is no longer active.'))
    return
  }
  // The click has the request's id, so log lines of a visit lead to its click.
  const { id } = request
  const kind = clickKindOf(request.method, request.headers)
  const tracked = target.state === 'tracked' && kind !== 'embedded'
  const { forwarded, subId } = query === '' ? NO_QUERY : readVisitQuery(query, target.ownNames)
  const click = {
    id,
    linkId: target.linkId,
    tracked,
    kind,
    subId,
    createdAt: app.platform.clock.now(),
    address: request.ip,
    agent: request.headers['user-agent'],
  }
  const location = tracked
    ? target.beforeReference + id + (forwarded && `&${forwarded}`) + target.afterReference
    : withForwarded(target.url, target.afterReference, forwarded)
  app.clicks.record(click).then(
    () => sendRedirect(visit, location),
    (error: unknown) => redirectWithoutClick(visit, target, error),
  )
}

/** While the database does not answer, a sale without a commission is better than none. A reference without a click would be unknown. */
function redirectWithoutClick(visit: Visit, target: RedirectTarget | null | undefined, error: unknown): void {
  const { app, request, query } = visit
  const isDown = refusalOf(error, app.platform.database).code === 'unavailable'
  if (!target || target.state === 'gone' || !isDown) {
    refuse(visit, error)
    return
  }
  app.clicks.countLost()
  app.platform.log.warn({ requestId: request.id, err: error }, 'redirected without a click')
  const { forwarded } = readVisitQuery(query, target.ownNames)
  sendRedirect(visit, withForwarded(target.url, target.afterReference, forwarded))
}

/** Does not throw: it is called by the group commit. */
function sendRedirect(visit: Visit, location: string): void {
  const { request, reply } = visit
  try {
    setShortHeaders(request, reply).header('referrer-policy', REFERRER_POLICY).redirect(location, 302)
  } catch (error) {
    reply.removeHeader('location')
    refuse(visit, error)
  }
}

/** A browser gets a page, or is redirected to LINK_FALLBACK_URL for a dead link; other clients get the problem. */
function refuse({ app: { platform }, request, reply }: Visit, error: unknown): void {
  setDefaultHeaders(request, reply)
  if (!acceptsHtml(request)) {
    sendProblem(platform, request, reply, error)
    return
  }
  const problem = problemAt(platform, request, error)
  const fallback = isDeadLink(problem) ? platform.config.LINK_FALLBACK_URL : undefined
  if (fallback === undefined) sendLinkPage(request, reply, platform, problem)
  else reply.redirect(fallback, 302)
}
