import { PassThrough, Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { commandNames } from '../command.ts'
import { reportFailure } from '../failures.ts'
import { buildProgram, helpArguments } from '../program.ts'
import { APP_KEY, type Ended } from './run-affiliate.ts'

/** No signal ends it, so there is always a code. */
export type EndedHere = Ended & { code: number }

export interface HereOptions {
  /** What stands on stdin. */
  input?: string
  /** What comes on stdin once this has been printed. */
  answer?: (printed: { stdout: string; stderr: string }) => string | undefined
  /** The working folder of the command. */
  folder?: string
}

/** What is typed once a text has appeared. */
export interface Typed {
  after: RegExp
  /** `\u0003` is Ctrl-C, `\u0004` Ctrl-D. */
  keys: string
  /** Called before the keys have an effect. */
  onSeen?: () => unknown
}

export interface TypeOptions {
  environment?: Record<string, string>
  folder?: string
  columns?: number
  rows?: number
  typed?: readonly Typed[]
}

export interface TerminalEnded {
  code: number
  /** Everything that the terminal was sent, stdout and stderr in one. */
  screen: string
}

interface Streams {
  stdin: PassThrough
  stdout: Writable
  stderr: Writable
}

/** Commands use the process's own streams, folder and environment, so they take turns. */
let turn: Promise<unknown> = Promise.resolve()

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const run = turn.then(work)
  turn = run.catch(() => undefined)
  return run
}

/**
 * Runs a command line in this process, as `cli/main.ts` does: for tests of what commands do, many times as fast as a process of
 * its own. There is no terminal on any side.
 */
export function runHere(
  args: readonly string[],
  environment: Record<string, string> = {},
  { input = '', answer, folder }: HereOptions = {},
): Promise<EndedHere> {
  return inTurn(async () => {
    const printed = { stdout: '', stderr: '' }
    const stdin = new PassThrough()
    const into = (name: keyof typeof printed) =>
      outputTo((text) => {
        printed[name] += text
        const typed = answer?.(printed)
        if (typed !== undefined) stdin.write(typed)
      })
    const streams = { stdin, stdout: into('stdout'), stderr: into('stderr') }
    if (!answer) stdin.end(input)
    const code = await runNow(args, { APP_KEY, ...environment }, streams, folder)
    return { code, ...printed }
  })
}

/** The same at a terminal: what is typed is seen once it is asked for. */
export function typeHere(args: readonly string[], options: TypeOptions = {}): Promise<TerminalEnded> {
  return inTurn(async () => {
    const { columns = 200, rows = 50, environment = {} } = options
    let raw = false
    const stdin = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode(on: boolean) {
        raw = on
        return stdin
      },
    })
    const waiting = [...(options.typed ?? [])]
    let shown = ''
    let seen = 0
    const show = (text = '') => {
      shown += text
      const [next] = waiting
      const match = next?.after.exec(stripVTControlCharacters(shown).replaceAll('\r', '').slice(seen))
      if (!next || !match) return
      seen += match.index + match[0].length
      waiting.shift()
      next.onSeen?.()
      if (next.keys === CTRL_C && !raw) process.emit('SIGINT')
      else stdin.write(next.keys)
      show()
    }
    const screen = Object.assign(outputTo(show), { isTTY: true, columns, rows })
    const streams = { stdin, stdout: screen, stderr: screen }
    // Ends what waits for a key that is never typed.
    const timeout = setTimeout(() => stdin.end(), TIMEOUT_MS)
    const signals = process.listeners('SIGINT')
    const code = await runNow(args, { APP_KEY, TERM: 'xterm', ...environment }, streams, options.folder)
    clearTimeout(timeout)
    for (const listener of process.listeners('SIGINT'))
      if (!signals.includes(listener)) process.off('SIGINT', listener)
    const left = waiting.map(({ after }) => String(after))
    if (left.length > 0) throw new Error(`never seen: ${left.join(', ')}\n${shown}`)
    return { code, screen: shown.replaceAll('\r\n', '\n') }
  })
}

/** A hundred times the usual. */
const TIMEOUT_MS = 300_000
const CTRL_C = '\u0003'

function outputTo(take: (text: string) => unknown): Writable {
  return new Writable({
    decodeStrings: false,
    write(text, _encoding, done) {
      take(String(text))
      done()
    },
  })
}

async function runNow(
  args: readonly string[],
  environment: Record<string, string>,
  streams: Streams,
  folder = process.cwd(),
): Promise<number> {
  const before = { ...process.env }
  const own = new Map(STREAMS.map((name) => [name, Object.getOwnPropertyDescriptor(process, name)]))
  const place = process.cwd()
  const program = buildProgram()
  Object.assign(process.env, environment)
  for (const name of STREAMS)
    Object.defineProperty(process, name, { value: streams[name], configurable: true })
  process.chdir(folder)
  let code: number
  try {
    await program.parseAsync(helpArguments(args, program), { from: 'user' })
    // A command may also end well and say by the exit code that not all is well.
    code = Number(process.exitCode ?? 0)
  } catch (error) {
    code = await reportFailure(error, args, commandNames(program))
  } finally {
    process.chdir(place)
    for (const [name, descriptor] of own)
      if (descriptor) Object.defineProperty(process, name, { ...descriptor, configurable: true })
    for (const name of Object.keys(environment)) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
  process.exitCode = undefined
  return code
}

const STREAMS = ['stdin', 'stdout', 'stderr'] as const
