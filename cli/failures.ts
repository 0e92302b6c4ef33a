import type { CommanderError } from 'commander'
import type { ErrorCode } from '../shared/error-codes.ts'

/** Something that the command line itself refuses; `usage` means that it was written wrongly (exit 2). */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly usage: boolean
  /** Goes into the problem object of `--json`. */
  readonly extra: Record<string, unknown>
  /** Lines that follow the first one for people, such as the candidates of an ambiguous name. */
  readonly lines: readonly string[]

  constructor(
    message: string,
    more: { code?: ErrorCode; extra?: Record<string, unknown>; lines?: readonly string[] } = {},
  ) {
    super(message)
    this.name = 'Failure'
    this.code = more.code ?? 'conflict'
    this.usage = more.code === 'validation_failed'
    this.extra = more.extra ?? {}
    this.lines = more.lines ?? []
  }
}

/** A command line that can never be right, whatever is in the database. */
export function wrongUsage(message: string): Failure {
  return new Failure(message, { code: 'validation_failed' })
}

interface Report {
  exitCode: 0 | 1 | 2
  code: ErrorCode
  detail: string
  extra?: Record<string, unknown>
  lines?: readonly string[]
}

/** Says what went wrong on stderr: one line for people, a problem object with `--json`. Answers the exit code. */
export async function reportFailure(error: unknown, args: readonly string[]): Promise<0 | 1 | 2> {
  const report = commanderReport(error) ?? (await reportOf(error))
  if (report.exitCode === 0 || report.detail === '') return report.exitCode
  const afterDashes = args.indexOf('--')
  const json = (afterDashes === -1 ? args : args.slice(0, afterDashes)).includes('--json')
  process.stderr.write(json ? await problemText(report) : humanText(report))
  return report.exitCode
}

function humanText({ detail, lines = [] }: Report): string {
  return [`affiliate: ${detail}`, ...lines, ''].join('\n')
}

async function problemText({ code, detail, extra }: Report): Promise<string> {
  const { STATUS_CODES } = await import('node:http')
  const { ERROR_STATUS } = await import('../shared/error-codes.ts')
  const status = ERROR_STATUS[code]
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code, ...extra }
  return `${JSON.stringify(problem)}\n`
}

/** Commander's own errors; help that was asked for is none, and help shown for want of a command was printed already. */
function commanderReport(error: unknown): Report | null {
  if (!(error instanceof Error)) return null
  const { code, exitCode, message } = error as CommanderError
  if (typeof code !== 'string' || !code.startsWith('commander.')) return null
  const detail = code === 'commander.help' ? '' : message.replace(/^error: /, '').replace(/\n/g, ' ')
  return { exitCode: exitCode === 0 ? 0 : 2, code: 'validation_failed', detail }
}

async function reportOf(error: unknown): Promise<Report> {
  if (error instanceof Failure) {
    const { code, message, extra, lines } = error
    return { exitCode: error.usage ? 2 : 1, code, detail: message, extra, lines }
  }
  return (
    (await refusalReport(error)) ?? (await settingReport(error)) ?? (await faultReport(error)) ?? bug(error)
  )
}

async function refusalReport(error: unknown): Promise<Report | null> {
  const { Refusal } = await import('../server/platform/refusal.ts')
  if (!(error instanceof Refusal)) return null
  const issues = error.issues?.map(({ path, message }) => `${path}: ${message}`).join('; ')
  return {
    exitCode: error.code === 'validation_failed' ? 2 : 1,
    code: error.code,
    detail: issues ?? error.detail,
    ...(error.issues ? { extra: { issues: error.issues } } : {}),
  }
}

async function settingReport(error: unknown): Promise<Report | null> {
  const { SettingError } = await import('../server/platform/config.ts')
  if (!(error instanceof SettingError)) return null
  return { exitCode: 1, code: 'validation_failed', detail: error.message }
}

/** The database, or the port to listen on, is not to be had. Wrapped errors are looked into. */
async function faultReport(error: unknown): Promise<Report | null> {
  const { postgresFault, sqliteFault } = await import('../server/platform/database-faults.ts')
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code = '', syscall, message } = cause as NodeJS.ErrnoException
    if (syscall === 'listen') return unavailable(listenProblem(cause))
    const fault = sqliteFault(cause) ?? postgresFault(cause)
    if (fault?.kind === 'contention') return unavailable('The database is busy. Try again shortly.')
    // Classes 28 and 3D: the password is wrong, or there is no such database.
    if (fault?.kind === 'unavailable' || /^(28|3D)/.test(code)) {
      return unavailable(`The database cannot be used: ${message || code}`)
    }
  }
  return null
}

function listenProblem(error: NodeJS.ErrnoException & { address?: string; port?: number }): string {
  const place = `${error.address ?? ''}:${error.port ?? ''}`
  if (error.code === 'EADDRINUSE') return `${place} is in use already. Set PORT to another one.`
  return `cannot listen on ${place} (${error.code}). Set HOST and PORT.`
}

function unavailable(detail: string): Report {
  return { exitCode: 1, code: 'unavailable', detail: detail.replace(/\s*\n\s*/g, ' ') }
}

/** Nobody expected it, so it is told whole. */
function bug(error: unknown): Report {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const [first = '', ...lines] = stack.split('\n')
  return { exitCode: 1, code: 'internal', detail: `This is a bug, please report it: ${first}`, lines }
}
