import { randomBytes } from 'node:crypto'
import { inspect, type styleText } from 'node:util'
import { printable, UNPRINTABLE } from '../../server/platform/printable.ts'

export { printable } from '../../server/platform/printable.ts'

export type Style = Extract<Parameters<typeof styleText>[0], 'bold' | 'dim' | 'green' | 'red' | 'yellow'>

/*
 * Texts of users, stores and the processor reach the terminal in many lines. All output goes through this file, which makes
 * each line printable as it is written. Styles travel inside a line as marks with a number that only this process knows, so that
 * a text cannot bring its own.
 */

const NONCE = randomBytes(8).toString('hex')
const MARK = new RegExp(`\\u0001${NONCE}:(\\d+)\\u0001`)

/** A text in a style, for a line that `printLines` writes. */
export function styled(style: Style, text: string): string {
  const [open, close] = inspect.colors[style] ?? [0, 0]
  return `${mark(open)}${text}${mark(close)}`
}

/** A line without the marks of its styles: what is measured. */
export function unstyled(line: string): string {
  return line.includes(NONCE)
    ? line
        .split(MARK)
        .filter((_, at) => at % 2 === 0)
        .join('')
    : line
}

function mark(code: number): string {
  return `\u0001${NONCE}:${code}\u0001`
}

/** One line as it is sent to a terminal: printable, with its tabs and the escape sequences of its styles. */
export function terminalLine(line: string): string {
  return line
    .split(MARK)
    .map((part, at) => (at % 2 === 1 ? `\u001b[${part}m` : printableWithTabs(part)))
    .join('')
}

/** Tabs part the cells of a table that is no terminal's; cells have none. */
function printableWithTabs(text: string): string {
  return text.split('\t').map(printable).join('\t')
}

/** Writes lines, each made printable. */
export function printLines(lines: readonly string[], stream: NodeJS.WriteStream = process.stdout): void {
  if (lines.length > 0) stream.write(`${lines.map(terminalLine).join('\n')}\n`)
}

/** Writes a question to stderr, without a line break. */
export function printPrompt(text: string): void {
  process.stderr.write(terminalLine(text))
}

/** A document as JSON in which what is not printable is escaped: the same document, safe to look at. */
export function jsonText(document: unknown, indent = 0): string {
  const text = JSON.stringify(document, null, indent)
  return text.replace(UNPRINTABLE, (found) => (found === '\n' ? found : escaped(found)))
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, '0'))
    .map((code) => `\\u${code}`)
    .join('')
}

/** Writes a document as JSON and a line break. */
export function printJson(document: unknown, indent = 0, stream: NodeJS.WriteStream = process.stdout): void {
  stream.write(`${jsonText(document, indent)}\n`)
}

/** Writes the text of a script for a shell as it is. */
export function printScript(script: string): void {
  process.stdout.write(script)
}
