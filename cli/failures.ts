import type { CommanderError } from 'commander'
import type { ErrorCode } from '../shared/error-codes.ts'
import { printJson, printLines } from './terminal/printable-text.ts'

interface FailureDetails {
  code?: ErrorCode
  /** 2 for `validation_failed`, and 1 otherwise, unless given. */
  exitCode?: number
  /** Goes into the problem object of `--json`. */
  extra?: Record<string, unknown>
  /** Lines that follow the first one for people, such as the candidates of an ambiguous name. */
  lines?: readonly string[]
}

/** Why a command ends without success; its message is for people. */
export class Failure extends Error {
  readonly details: FailureDetails

  constructor(message: string, details: FailureDetails = {}) {
    super(message)
    this.name = 'Failure'
    this.details = details
  }
}

/** Ctrl-C at a question. The exit code is 128 and the number of SIGINT, as shells count. */
export function interrupted(): Failure {
  return new Failure('Interrupted; nothing was done.', { exitCode: 130 })
}

/** A command line that can never be right, whatever is in the database. */
export function wrongUsage(message: string): Failure {
  return new Failure(message, { code: 'validation_failed' })
}

/**
 * Says what went wrong on stderr: one line for people, a problem object with `--json`. Returns the exit code. `commandNames` are those of
 * every command, such as `sales explain`.
 */
export async function reportFailure(
  error: unknown,
  args: readonly string[],
  commandNames: readonly string[],
): Promise<number> {
  const { message, details } = (await usageFailure(error, args, commandNames)) ?? (await failureOf(error))
  const { code = 'conflict', exitCode = code === 'validation_failed' ? 2 : 1, extra, lines = [] } = details
  if (message === '') return exitCode
  const afterDashes = args.indexOf('--')
  const json = (afterDashes === -1 ? args : args.slice(0, afterDashes)).includes('--json')
  if (json) {
    const { STATUS_CODES } = await import('node:http')
    const { ERROR_STATUS } = await import('../shared/error-codes.ts')
    const status = ERROR_STATUS[code]
    const problem = {
      type: 'about:blank',
      title: STATUS_CODES[status],
      status,
      detail: message,
      code,
      ...extra,
    }
    printJson(problem, 0, process.stderr)
  } else printLines([`affiliate: ${message}`, ...lines], process.stderr)
  return exitCode
}

/** Commander's own errors. Help that was asked for is none, and help shown for want of a command was printed already. */
async function usageFailure(
  error: unknown,
  args: readonly string[],
  commandNames: readonly string[],
): Promise<Failure | null> {
  const { code, exitCode, message } = error as CommanderError
  if (typeof code !== 'string' || !code.startsWith('commander.')) return null
  if (exitCode === 0 || code === 'commander.help') return new Failure('', { exitCode: exitCode && 2 })
  return wrongUsage(
    await withSuggestion(message.replace(/^error: /, '').replace(/\n/g, ' '), args, commandNames),
  )
}

/** Words of other programs, and where to find what they do. */
const ELSEWHERE: readonly [words: string, advice: string][] = [
  ['version v', 'Run "affiliate --version".'],
  ['man manual-page usage', 'Run "affiliate --help".'],
  [
    'logs log',
    'The service logs to its standard output: journalctl -u affiliate, or docker compose logs app.',
  ],
  ['start run up', 'Run "affiliate serve".'],
  ['stop restart down kill', 'Do it where the service was started: systemctl restart affiliate, or Ctrl-C.'],
  ['quit exit q', 'There is nothing to quit: each command ends by itself, and "serve" with Ctrl-C.'],
  ['config settings env set', 'Settings are environment variables and .env: "affiliate doctor" checks them.'],
  ['login logout auth', 'There is no log-in: commands work on the database of DATABASE_URL.'],
  ['update upgrade install', 'See the guide server/guides/upgrade.md, then "affiliate db migrate".'],
  ['health ping check test', 'Run "affiliate doctor".'],
  ['ps top info dashboard', 'Run "affiliate status".'],
  ['ls list', 'Name what to list, such as "affiliate users list".'],
  ['show get view cat', 'Name what to show, such as "affiliate users show USER".'],
  [
    'rm delete remove',
    'Nothing is deleted: see "users suspend", "links end", "stores release", "endpoints disable".',
  ],
  ['orders order', 'Run "affiliate sales list" or "affiliate pending-orders list".'],
  ['invoices cycles', 'Run "affiliate billing cycles".'],
  ['merchants creators admins accounts', 'Run "affiliate users list --role ROLE".'],
  ['shops', 'Run "affiliate stores list".'],
  ['clicks exports export', 'Run "affiliate jobs export".'],
]

/** The same in a group: the first of these commands that the group has. */
const IN_GROUPS: readonly [words: string, meant: string][] = [
  ['ls all list', 'list cycles events due balances fixtures'],
  ['get view cat info', 'show'],
  ['rm delete remove block ban', 'suspend end disable release'],
  ['resend', 'replay retry'],
  ['approve reject', 'vet'],
  ['check', 'verify status'],
]

const adviceFor = (typed: string, table: readonly [words: string, advice: string][]) =>
  table.find(([words]) => words.split(' ').includes(typed))?.[1]

/** Commander looks for the nearest word where it stands; what was typed may be a command of a group, or a value. */
async function withSuggestion(
  words: string,
  args: readonly string[],
  commandNames: readonly string[],
): Promise<string> {
  const value = /^unknown option '(-[^-'][^']*)'/.exec(words)?.[1]
  if (value !== undefined) {
    const line = args.filter((word) => !word.startsWith('--')).join(' ')
    const name = commandNames.find((one) => line.startsWith(`${one} `)) ?? 'COMMAND'
    const values = name === 'COMMAND' ? value : line.slice(name.length + 1)
    return `${words}. If it is a value, put -- before the values: affiliate ${name} -- ${values}`
  }
  if (words === "missing required argument 'order'") {
    return `${words}. Put quotes around a name that begins with #: affiliate sales explain '#1001'`
  }
  const typed = /^unknown command '([^']*)'/.exec(words)?.[1]
  if (typed === undefined) return words
  const group = args.slice(0, args.indexOf(typed)).findLast((word) => !word.startsWith('-'))
  const meant = (adviceFor(typed, IN_GROUPS) ?? '').split(' ').map((word) => `${group} ${word}`)
  const name = meant.find((one) => commandNames.includes(one))
  if (name !== undefined) return `unknown command '${typed}'. Did you mean ${name}?`
  const isGroup = commandNames.some((one) => one.startsWith(`${group} `))
  const elsewhere = isGroup ? undefined : adviceFor(typed, ELSEWHERE)
  if (elsewhere !== undefined) return `unknown command '${typed}'. ${elsewhere}`
  if (words !== `unknown command '${typed}'`) return words
  const { nearestWord } = await import('../server/platform/nearest-word.ts')
  const lastWord = (name: string) => name.split(' ').at(-1) ?? ''
  const nearest = nearestWord(typed, commandNames.map(lastWord))
  const names = commandNames.filter((name) => lastWord(name) === nearest)
  return names.length === 0 || names.length > 3
    ? `${words}. See "affiliate ${isGroup ? `${group} ` : ''}--help".`
    : `${words} (Did you mean ${names.join(' or ')}?)`
}

async function failureOf(error: unknown): Promise<Failure> {
  if (error instanceof Failure) return error
  const { Refusal } = await import('../server/platform/api/refusal.ts')
  if (error instanceof Refusal) {
    const { code, detail, issues } = error
    if (!issues) return new Failure(detail, { code })
    const text = issues.map(({ path, message }) => `${path}: ${message}`).join('; ')
    return new Failure(text, { code, extra: { issues } })
  }
  const { SettingError } = await import('../server/platform/config.ts')
  if (error instanceof SettingError) {
    const issues = error.faults.map(({ name: path, problem: message }) => ({ path, message }))
    const details = { code: 'validation_failed', exitCode: 1, extra: { issues } } as const
    if (issues.length === 1) return new Failure(error.message, details)
    const lines = issues.map(({ path, message }) => `  ${path}: ${message}`)
    return new Failure(`${issues.length} settings are invalid:`, { ...details, lines })
  }
  const { tamperedRowOf } = await import('../server/platform/api/problem.ts')
  const tampered = tamperedRowOf(error)
  if (tampered) return new Failure(`${tampered.message} Run "affiliate ledger verify".`)
  return (await faultOf(error)) ?? bug(error)
}

/** After these a transaction was rolled back. */
const NOT_WRITTEN = /^(SQLITE_(READONLY|FULL|IOERR)|ENOSPC|53100|EDQUOT|58030|EIO|EFBIG)/

/** The database cannot be used, or the port to listen on. */
async function faultOf(error: unknown): Promise<Failure | null> {
  const { databaseProblem } = await import('../server/platform/database/database-problems.ts')
  const unavailable = (text: string) => new Failure(text.replace(/\s*\n\s*/g, ' '), { code: 'unavailable' })
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

/** An unexpected error is printed with its stack. */
function bug(error: unknown): Failure {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const [first = '', ...lines] = stack.split('\n')
  return new Failure(`This is a bug, please report it: ${first}`, { code: 'internal', lines })
}
