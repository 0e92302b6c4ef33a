const [form, again] = document.forms
const answer = document.querySelector('#answer')
const texts = JSON.parse(document.querySelector('main').dataset.texts)
const { hash } = location
const token = new URLSearchParams(hash.slice(1)).get('token') ?? ''
history.replaceState(null, '', location.pathname + location.search)
for (const link of document.querySelectorAll('[hreflang]')) link.hash = hash
// Another link, opened in this tab.
addEventListener('hashchange', () => location.reload())

async function call(route, input, bearer) {
  const headers = { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) }
  const response = await fetch(`../auth/${route}`, { method: 'POST', headers, body: JSON.stringify(input) })
  const text = await response.text()
  const output = text === '' ? {} : JSON.parse(text)
  if (!response.ok) throw output
  return output
}

const actions = {
  verify: () => call('verify-email', { token }),
  reset: (input) => call('password-reset/confirm', { token, ...input }),
  'reset-again': (input) => call('password-reset', input),
  // The route needs a log-in, which ends at once.
  async 'verify-again'({ code, ...input }) {
    const session = await call('login', { ...input, ...(code && { code }) })
    await call('verify-email/resend', {}, session.token).finally(() => call('logout', {}, session.token))
  },
}

/** Shows a refusal; when the link is not valid, the form that sends a new one too. */
function show({ code, detail, issues = [] }) {
  const isLinkWrong = issues.some(({ path }) => path === 'token')
  if (isLinkWrong) {
    form.hidden = true
    again.hidden = false
  }
  if (code === 'second_factor_required') again.querySelector('.code').hidden = false
  const password = issues.find(({ path }) => path === 'new_password')
  answer.textContent = isLinkWrong
    ? texts.expired
    : (texts[code] ?? (password ? `${texts.password} ${password.message}.` : (detail ?? texts.failed)))
}

for (const one of document.forms) {
  one.addEventListener('submit', async (event) => {
    event.preventDefault()
    const button = one.querySelector('button')
    button.disabled = true
    answer.textContent = ''
    try {
      await actions[one.id](Object.fromEntries(new FormData(one)))
      one.hidden = true
      answer.textContent = one.dataset.done
    } catch (problem) {
      show(problem)
    }
    button.disabled = false
  })
}
