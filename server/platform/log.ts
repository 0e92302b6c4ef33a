import pino, { type Logger } from 'pino'
import { prettyLine } from './pretty-log.ts'

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
