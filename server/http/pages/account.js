const form = document.querySelector('form')
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
