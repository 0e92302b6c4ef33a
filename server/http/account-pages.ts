import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The pages load their own files only, and send the token to this service only. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** URLs are relative, so the pages also work under a path prefix of a proxy. */
const page = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="stylesheet" href="account.css">
</head>
<body>
<main>
<h1>${title}</h1>
${content}
<p id="answer" role="status"></p>
<noscript><p>This page needs JavaScript.</p></noscript>
</main>
<script type="module" src="account.js"></script>
</body>
</html>
`

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

/** The token is in the fragment, which reaches no log, and leaves the address bar at the start. */
const SCRIPT = `const form = document.querySelector('form')
const answer = document.querySelector('#answer')
const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
history.replaceState(null, '', location.pathname)

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const button = form.querySelector('button')
  button.disabled = true
  answer.textContent = ''
  try {
    const body = JSON.stringify({ token, ...Object.fromEntries(new FormData(form)) })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(form.dataset.route, { method: 'POST', headers, body })
    if (response.ok) {
      form.hidden = true
      answer.textContent = form.dataset.done
      return
    }
    const problem = await response.json()
    const isTokenWrong = problem.issues?.some(({ path }) => path === 'token')
    answer.textContent = isTokenWrong
      ? 'This link was used already or has expired. Request a new one.'
      : problem.detail
  } catch {
    answer.textContent = 'The service does not answer. Try again shortly.'
  }
  button.disabled = false
})
`

const STYLE = `body { margin: 0; padding: 24px 12px; font: 16px/1.5 Arial, Helvetica, sans-serif; color: #1f2937; background: #f3f4f6; }
main { max-width: 420px; margin: 0 auto; padding: 24px; border-radius: 8px; background: #fff; }
h1 { margin: 0 0 16px; font-size: 22px; line-height: 1.3; }
form[hidden] { display: none; }
label { display: block; margin-bottom: 4px; }
input { box-sizing: border-box; width: 100%; margin-bottom: 16px; padding: 10px; border: 1px solid #6b7280; border-radius: 6px; font: inherit; color: inherit; background: transparent; }
button { padding: 10px 20px; border: 0; border-radius: 6px; font: inherit; color: #fff; background: #14733f; cursor: pointer; }
button:disabled { opacity: 0.6; }
:focus-visible { outline: 2px solid #1664b0; outline-offset: 2px; }
@media (prefers-color-scheme: dark) {
  body { color: #e5e7eb; background: #111827; }
  main { background: #1f2937; }
  :focus-visible { outline-color: #51a8ff; }
}
`

const ASSETS = [
  ['account.js', 'text/javascript; charset=utf-8', SCRIPT],
  ['account.css', 'text/css; charset=utf-8', STYLE],
] as const

export type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** The pages that mailed links lead to. They call the API like any client. */
export function registerAccountPages(server: FastifyInstance, guard: Guard): void {
  for (const [name, text] of Object.entries(PAGES)) {
    server.get(`/account/${name}`, { onRequest: guard }, async (_request, reply) =>
      reply.header('content-security-policy', PAGE_POLICY).type('text/html; charset=utf-8').send(text),
    )
  }
  for (const [name, type, text] of ASSETS) {
    server.get(`/account/${name}`, async (_request, reply) =>
      reply.header('cache-control', 'public, max-age=3600').type(type).send(text),
    )
  }
}
