/** Copies text; without a secure connection browsers have the older way only. */
async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent)
  getSelection().selectAllChildren(code)
  document.execCommand('copy')
  getSelection().removeAllRanges()
}

for (const code of document.querySelectorAll('.code code')) {
  const button = document.createElement('button')
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    await copy(code)
    button.textContent = 'Copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 2000)
  })
  code.closest('.code').append(button)
}
