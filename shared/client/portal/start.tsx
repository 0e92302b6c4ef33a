import { render } from 'preact'
import { startSession } from './client.ts'
import { Shell } from './shell.tsx'
import { startLanguage } from './text.ts'

void startSession()
await startLanguage()
const root = document.body
// The placeholder of the page has been there since its first byte.
root.replaceChildren()
render(<Shell />, root)
