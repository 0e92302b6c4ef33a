import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERROR_STATUS } from '../../shared/error-codes.ts'
import { EVENTS } from '../../shared/events.ts'
import { readUnsubscribeToken, unsubscribe } from '../notifications/channels/mail/notifications.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { acceptsHtml, type Guard, htmlPage, htmlReply, pagePolicy, serveAsset } from './pages.ts'

/** The pages load their own files only, and send the token to this service only. */
const SCRIPT_POLICY = pagePolicy("script-src 'self'; style-src 'self'; connect-src 'self'")
const FORM_POLICY = pagePolicy("style-src 'self'", "'self'")
/** Mail programs send `List-Unsubscribe=One-Click`. */
const BODY_LIMIT = 4096

const page = (title: string, content: string, script = '') =>
  htmlPage({
    title,
    head: '<link rel="stylesheet" href="account.css">',
    body: `<main>\n<h1>${title}</h1>\n${content}\n</main>${script}`,
  })

/** A page whose form `account.js` sends. */
const scriptPage = (title: string, form: string) =>
  page(
    title,
    `${form}
<p id="answer" role="status"></p>
<noscript><p>This page needs JavaScript.</p></noscript>`,
    '\n<script type="module" src="account.js"></script>',
  )

const PAGES = {
  'verify-email': scriptPage(
    'Verify your e-mail address',
    `<form data-route="../auth/verify-email" data-done="Your e-mail address is verified. You can close this page.">
<p>Confirm that the address to which the e-mail was sent is yours.</p>
<button>Verify e-mail address</button>
</form>`,
  ),
  'reset-password': scriptPage(
    'Choose a new password',
    `<form data-route="../auth/password-reset/confirm" data-done="Your password is changed, and all sessions have ended. Log in with the new one.">
<label for="password">New password, at least 10 characters</label>
<input id="password" name="new_password" type="password" autocomplete="new-password" minlength="10" maxlength="256" required>
<button>Set password</button>
</form>`,
  ),
}

/** The pages that mailed links lead to. They call the API like any client. */
export function registerAccountPages(server: FastifyInstance, platform: Platform, guard: Guard): void {
  for (const [name, text] of Object.entries(PAGES)) {
    server.get(`/account/${name}`, { onRequest: guard }, async (_request, reply) =>
      htmlReply(reply, SCRIPT_POLICY).send(text),
    )
  }
  for (const name of ['account.js', 'account.css']) {
    serveAsset(server, `/account/${name}`, new URL(`pages/${name}`, import.meta.url))
  }
  server.register(async (scope) => registerUnsubscribe(scope, platform, guard))
}

/**
 * One-click unsubscribing (RFC 8058). The page needs a click, because mail scanners follow links; mail programs and its form send a POST.
 * The token in the address stands for the log-in, so the body is ignored.
 */
function registerUnsubscribe(scope: FastifyInstance, platform: Platform, guard: Guard): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, (_request, _body, done) =>
    done(null, undefined),
  )
  const url = '/account/unsubscribe'
  scope.get(url, { onRequest: guard }, async (request, reply) =>
    answer(request, reply, async (token) => {
      const { event } = readUnsubscribeToken(platform, token)
      const question = `<p>You receive e-mails about ${EVENTS[event].mail}.</p>\n<form method="post"><button>Stop these e-mails</button></form>`
      return page('Unsubscribe', question)
    }),
  )
  scope.post(url, { onRequest: guard }, async (request, reply) =>
    answer(request, reply, async (token) => {
      const event = await unsubscribe(platform, token)
      return page('Unsubscribed', `<p>You receive no more e-mails about ${EVENTS[event].mail}.</p>`)
    }),
  )
}

/** A browser gets a refusal as a page. */
async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  pageOf: (token: string) => Promise<string>,
) {
  htmlReply(reply, FORM_POLICY)
  const { token } = request.query as Record<string, unknown>
  try {
    return reply.send(await pageOf(typeof token === 'string' ? token : ''))
  } catch (error) {
    if (!(error instanceof Refusal) || !acceptsHtml(request)) throw error
    const text = page('This link is not valid', `<p>${error.detail.replaceAll('"', '&quot;')}</p>`)
    return reply.code(ERROR_STATUS[error.code]).send(text)
  }
}
