import { styleText } from 'node:util'
import pino, { type Logger } from 'pino'
import { jsonOrNull } from '../../shared/json.ts'
import { printable } from './printable.ts'

export type { Logger } from 'pino'

/** Lines on stderr, since stdout is for the output of commands: for people at a terminal, else JSON. */
export function createLog(level: string, stderr: NodeJS.WriteStream = process.stderr): Logger {
  const options = { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime }
  if (!stderr.isTTY) return pino(options, pino.destination({ fd: 2, sync: true }))
  // Writes to a terminal are synchronous.
  const { NO_COLOR, TERM } = process.env
  const write = (line: string) => {
    const colour = !NO_COLOR && TERM !== 'dumb'
    stderr.write(`${prettyLine(line, { width: stderr.columns || 80, colour })}\n`)
  }
  return pino(options, { write })
}

const STYLES = { info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

/** Time and level, `12:30:00 error `, stand before the message; everything else below it. */
const INDENT = ' '.repeat('12:30:00 error '.length)

/**
 * A JSON line of the log as lines for people: local time, level and message, then the fields and an error's stack. Values may
 * come from outside, so each line is made printable. `width` is in columns.
 */
export function prettyLine(line: string, { width, colour }: { width: number; colour: boolean }): string {
  const record = jsonOrNull(line) as Record<string, unknown> | null
  if (record === null) return printable(line.trimEnd())
  const { level, time, msg, err, ...fields } = record
  const style = (name: Parameters<typeof styleText>[0], text: string) =>
    colour ? styleText(name, text, { validateStream: false }) : text
  const name = pino.levels.labels[Number(level)] ?? 'log'
  const levelStyle = name in STYLES ? STYLES[name as keyof typeof STYLES] : 'dim'
  const clock = new Date(String(time)).toTimeString().slice(0, '12:30:00'.length)
  const first = `${style('dim', clock)} ${style(levelStyle, name.padEnd(5))} ${printable(String(msg ?? ''))}`
  const pairs = Object.entries(fields).map(([key, value]) => `${key} ${textOf(value)}`)
  const below = [...packed(pairs.map(printable), width - INDENT.length), ...errorLines(err)]
  return [first, ...below.map((text) => INDENT + style('dim', text))].join('\n')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** As many texts on each line as fit into `width`. */
function packed(texts: readonly string[], width: number): string[] {
  const lines: string[] = []
  for (const text of texts) {
    const longer = lines.length > 0 ? `${lines.at(-1)}  ${text}` : text
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer
    else lines.push(text)
  }
  return lines
}

/** The stack, which holds type and message, and the other facts of an error. */
function errorLines(error: unknown): string[] {
  if (error === undefined) return []
  if (typeof error !== 'object' || error === null) return [printable(textOf(error))]
  const { stack, type, message, ...facts } = error as Record<string, unknown>
  const text = stack === undefined ? `${type}: ${message}` : String(stack)
  const rest = Object.keys(facts).length > 0 ? [textOf(facts)] : []
  return [...text.split('\n'), ...rest].map(printable)
}
