import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERROR_STATUS } from '../../shared/error-codes.ts'
import { EVENTS } from '../../shared/events.ts'
import { readUnsubscribeToken, unsubscribe } from '../notifications/channels/mail/notifications.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { type Guard, htmlPage, htmlReply, pagePolicy } from './pages.ts'

const POLICY = pagePolicy("style-src 'self'", "'self'")
/** Mail programs send `List-Unsubscribe=One-Click`. */
const BODY_LIMIT = 4096

const page = (title: string, content: string) =>
  htmlPage({
    title,
    head: '<link rel="stylesheet" href="account.css">',
    body: `<main>\n<h1>${title}</h1>\n${content}\n</main>`,
  })

/**
 * One-click unsubscribing (RFC 8058). The page needs a click, because mail scanners follow links; mail programs and its form send a POST.
 * The token in the address stands for the log-in, so the body is ignored.
 */
export function registerUnsubscribe(server: FastifyInstance, platform: Platform, guard: Guard): void {
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, (_request, _body, done) =>
      done(null, undefined),
    )
    const url = '/account/unsubscribe'
    scope.get(url, { onRequest: guard }, async (request, reply) =>
      answer(request, reply, () => {
        const { event } = readUnsubscribeToken(platform, tokenOf(request))
        const question = `<p>You receive e-mails about ${EVENTS[event].mail}.</p>\n<form method="post"><button>Stop these e-mails</button></form>`
        return page('Unsubscribe', question)
      }),
    )
    scope.post(url, { onRequest: guard }, async (request, reply) =>
      answer(request, reply, async () => {
        const event = await unsubscribe(platform, tokenOf(request))
        return page('Unsubscribed', `<p>You receive no more e-mails about ${EVENTS[event].mail}.</p>`)
      }),
    )
  })
}

/** A browser gets a refusal as a page. */
async function answer(request: FastifyRequest, reply: FastifyReply, pageOf: () => string | Promise<string>) {
  htmlReply(reply, POLICY)
  try {
    return reply.send(await pageOf())
  } catch (error) {
    const isBrowser = (request.headers.accept ?? '').includes('text/html')
    if (!(error instanceof Refusal) || !isBrowser) throw error
    const text = page('This link is not valid', `<p>${error.detail.replaceAll('"', '&quot;')}</p>`)
    return reply.code(ERROR_STATUS[error.code]).send(text)
  }
}

function tokenOf(request: FastifyRequest): string {
  const { token } = request.query as Record<string, unknown>
  return typeof token === 'string' ? token : ''
}
