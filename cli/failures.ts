import type { CommanderError } from 'commander'
import type { ErrorCode } from '../shared/error-codes.ts'
import { printJson, printLines } from './terminal/printable-text.ts'

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

/** Ctrl-C at a question. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted; nothing was done.')
    this.name = 'Interrupted'
  }
}

/** A command line that can never be right, whatever is in the database. */
export function wrongUsage(message: string): Failure {
  return new Failure(message, { code: 'validation_failed' })
}

/** What the process ends with. */
type ExitCode = 0 | 1 | 2 | typeof INTERRUPTED

/** 128 and the number of SIGINT, as shells count. */
const INTERRUPTED = 130

interface Report {
  exitCode: ExitCode
  code: ErrorCode
  detail: string
  extra?: Record<string, unknown>
  lines?: readonly string[]
}

/** Says what went wrong on stderr: one line for people, a problem object with `--json`. Answers the exit code. */
export async function reportFailure(
  error: unknown,
  args: readonly string[],
  /** Of every command, such as `sales explain`. */
  commandNames: readonly string[] = [],
): Promise<ExitCode> {
  const report = (await commanderReport(error, args, commandNames)) ?? (await reportOf(error))
  if (report.exitCode === 0 || report.detail === '') return report.exitCode
  const afterDashes = args.indexOf('--')
  const json = (afterDashes === -1 ? args : args.slice(0, afterDashes)).includes('--json')
  if (json) printJson(await problemOf(report), 0, process.stderr)
  else printLines([`affiliate: ${report.detail}`, ...(report.lines ?? [])], process.stderr)
  return report.exitCode
}

async function problemOf({ code, detail, extra }: Report): Promise<Record<string, unknown>> {
  const { STATUS_CODES } = await import('node:http')
  const { ERROR_STATUS } = await import('../shared/error-codes.ts')
  const status = ERROR_STATUS[code]
  return { type: 'about:blank', title: STATUS_CODES[status], status, detail, code, ...extra }
}

/** Commander's own errors; help that was asked for is none, and help shown for want of a command was printed already. */
async function commanderReport(
  error: unknown,
  args: readonly string[],
  commandNames: readonly string[],
): Promise<Report | null> {
  if (!(error instanceof Error)) return null
  const { code, exitCode, message } = error as CommanderError
  if (typeof code !== 'string' || !code.startsWith('commander.')) return null
  const words = message.replace(/^error: /, '').replace(/\n/g, ' ')
  const detail = code === 'commander.help' ? '' : await withSuggestion(words, args, commandNames)
  return { exitCode: exitCode === 0 ? 0 : 2, code: 'validation_failed', detail }
}

/** Words of other programs, and where to find what they do. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  version: 'Run "affiliate --version".',
  logs: 'The service logs to its standard output: journalctl -u affiliate, or docker compose logs app.',
  start: 'Run "affiliate serve".',
  stop: 'Stop it where it was started: systemctl stop affiliate, or Ctrl-C.',
}
const SAME: Readonly<Record<string, string>> = { log: 'logs', run: 'start', up: 'start' }

/** Commander looks for the nearest word where it stands; what was typed may be a command of a group, or a value. */
async function withSuggestion(
  words: string,
  args: readonly string[],
  commandNames: readonly string[],
): Promise<string> {
  const value = /^unknown option '(-[^-'][^']*)'/.exec(words)?.[1]
  if (value !== undefined) {
    const line = ` ${args.join(' ')} `
    const name = commandNames.find((one) => line.includes(` ${one} `)) ?? 'COMMAND'
    return `${words}. If it is a value, put -- before the values: affiliate ${name} -- ${value}`
  }
  if (words === "missing required argument 'order'") {
    return `${words}. Put quotes around a name that begins with #: affiliate sales explain '#1001'`
  }
  const typed = /^unknown command '([^']*)'/.exec(words)?.[1]
  if (typed === undefined) return words
  const elsewhere = ELSEWHERE[SAME[typed] ?? typed]
  if (elsewhere !== undefined) return `unknown command '${typed}'. ${elsewhere}`
  if (words !== `unknown command '${typed}'`) return words
  const { nearestWord } = await import('../server/platform/nearest-word.ts')
  const lastWord = (name: string) => name.split(' ').at(-1) ?? ''
  const nearest = nearestWord(typed, commandNames.map(lastWord))
  const names = commandNames.filter((name) => lastWord(name) === nearest)
  return names.length === 0
    ? `${words}. See "affiliate --help".`
    : `${words} (Did you mean ${names.join(' or ')}?)`
}

async function reportOf(error: unknown): Promise<Report> {
  if (error instanceof Failure) {
    const { code, message, extra, lines } = error
    return { exitCode: error.usage ? 2 : 1, code, detail: message, extra, lines }
  }
  if (error instanceof Interrupted) return { exitCode: INTERRUPTED, code: 'conflict', detail: error.message }
  return (
    (await refusalReport(error)) ?? (await settingReport(error)) ?? (await faultReport(error)) ?? bug(error)
  )
}

async function refusalReport(error: unknown): Promise<Report | null> {
  const { Refusal } = await import('../server/platform/api/refusal.ts')
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

/** After these a transaction was rolled back. */
const NOT_WRITTEN = /^(SQLITE_(READONLY|FULL|IOERR)|ENOSPC|53100|EDQUOT|58030|EIO|EFBIG)/

/** The database cannot be used, or the port to listen on. */
async function faultReport(error: unknown): Promise<Report | null> {
  const { databaseProblem } = await import('../server/platform/database/database-problems.ts')
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code = '', syscall, message } = cause as NodeJS.ErrnoException
    if (syscall === 'listen') return unavailable(listenProblem(cause))
    const problem = databaseProblem(cause)
    if (problem === null) continue
    const unchanged = NOT_WRITTEN.test(code) ? ' Nothing was changed.' : ''
    return unavailable(`${problem.says} ${problem.remedy}${unchanged} (${message || code})`)
  }
  return null
}

function listenProblem(error: NodeJS.ErrnoException & { address?: string; port?: number }): string {
  const place = [error.address, error.port].filter(Boolean).join(':')
  if (error.code === 'EADDRINUSE') return `${place} is in use already. Set PORT to another one.`
  return `Cannot listen on ${place} (${error.code}). Set HOST and PORT.`
}

function unavailable(detail: string): Report {
  return { exitCode: 1, code: 'unavailable', detail: detail.replace(/\s*\n\s*/g, ' ') }
}

/** An unexpected error is printed with its stack. */
function bug(error: unknown): Report {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const [first = '', ...lines] = stack.split('\n')
  return { exitCode: 1, code: 'internal', detail: `This is a bug, please report it: ${first}`, lines }
}
