import type { FastifyInstance } from 'fastify'
import { type Guard, htmlPage, htmlReply, pagePolicy, serveAsset } from './pages.ts'

/** The pages load their own files only, and send the token to this service only. */
const PAGE_POLICY = pagePolicy("script-src 'self'; style-src 'self'; connect-src 'self'")

const page = (title: string, content: string) =>
  htmlPage({
    title,
    head: '<link rel="stylesheet" href="account.css">',
    body: `<main>
<h1>${title}</h1>
${content}
<p id="answer" role="status"></p>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
<script type="module" src="account.js"></script>`,
  })

const PAGES = {
  'verify-email': page(
    'Verify your e-mail address',
    `<form data-route="../auth/verify-email" data-done="Your e-mail address is verified. You can close this page.">
<p>Confirm that the address to which the e-mail was sent is yours.</p>
<button>Verify e-mail address</button>
</form>`,
  ),
  'reset-password': page(
    'Choose a new password',
    `<form data-route="../auth/password-reset/confirm" data-done="Your password is changed, and all sessions have ended. Log in with the new one.">
<label for="password">New password, at least 10 characters</label>
<input id="password" name="new_password" type="password" autocomplete="new-password" minlength="10" maxlength="256" required>
<button>Set password</button>
</form>`,
  ),
}

/** The pages that mailed links lead to. They call the API like any client. */
export function registerAccountPages(server: FastifyInstance, guard: Guard): void {
  for (const [name, text] of Object.entries(PAGES)) {
    server.get(`/account/${name}`, { onRequest: guard }, async (_request, reply) =>
      htmlReply(reply, PAGE_POLICY).send(text),
    )
  }
  for (const name of ['account.js', 'account.css']) {
    serveAsset(server, `/account/${name}`, new URL(`pages/${name}`, import.meta.url))
  }
}
