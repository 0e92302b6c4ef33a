import pino, { type Logger } from 'pino'

export type { Logger } from 'pino'

/** JSON lines on stderr; stdout is for the output of commands. */
export function createLog(level: string): Logger {
  return pino(
    { level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  )
}
