import { readFileSync } from 'node:fs'
import { ERROR_STATUS, ERROR_TEXTS, type ErrorCode } from '../../../shared/error-codes.ts'
import { EXAMPLES } from './examples.ts'

/** The text above the operations, in Markdown. Links are relative to the page that shows it, `/docs`. */
export function introduction(serverUrl: string): string {
  return readFileSync(new URL('../pages/introduction.md', import.meta.url), 'utf8')
    .replace('SERVER_URL', () => serverUrl)
    .replace('REGISTRATION', () => JSON.stringify(EXAMPLES.bodies['auth.register']))
    .replace('ERRORS', errorTable)
}

/** Every code as a row of a Markdown table. */
function errorTable(): string {
  const rows = Object.entries(ERROR_STATUS).map(([code, status]) => {
    const { meaning, next } = ERROR_TEXTS[code as ErrorCode]
    return `| \`${code}\` | ${status} | ${meaning} | ${next} |`
  })
  return ['| code | status | meaning | what to do |', '|---|---|---|---|', ...rows].join('\n')
}
