import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { stripVTControlCharacters } from 'node:util'
import { ENTRY, environmentOf } from './run-affiliate.ts'

/** Why no terminal can be had here; `null` where `script` of util-linux gives one. */
export const NO_PTY: string | null = (() => {
  const { status } = spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' })
  return status === 0 ? null : 'there is no `script` of util-linux here to give a terminal'
})()

/** What is typed once a text has appeared. */
export interface Typed {
  after: RegExp
  /** `\u0003` is Ctrl-C, `\u0004` Ctrl-D. */
  keys: string
  /** What else is done at that moment. */
  onSeen?: () => unknown
}

export interface PtyOptions {
  environment?: Record<string, string>
  folder?: string
  columns?: number
  rows?: number
  typed?: readonly Typed[]
}

export interface PtyEnded {
  code: number | null
  /** Everything that the terminal was sent, stdout and stderr in one. */
  screen: string
}

/** A hundred times the usual. */
const TIMEOUT_MS = 300_000

/** Reads what a terminal shows, and types by `write` when what is waited for has appeared. */
export function typist(typed: readonly Typed[] = [], write: (keys: string) => unknown) {
  const waiting = [...typed]
  let screen = ''
  let seen = 0
  const type = () => {
    const [next] = waiting
    if (!next) return
    const match = next.after.exec(plain(screen).slice(seen))
    if (!match) return
    seen += match.index + match[0].length
    waiting.shift()
    write(next.keys)
    next.onSeen?.()
    type()
  }
  return {
    show(text: string) {
      screen += text
      type()
    },
    /** Rejects with the screen if something was never seen. `giveUp` ends what waits for a key that is never typed. */
    async untilEnd(ended: Promise<number | null>, giveUp: () => unknown): Promise<PtyEnded> {
      const timeout = setTimeout(giveUp, TIMEOUT_MS)
      const code = await ended.finally(() => clearTimeout(timeout))
      const left = waiting.map(({ after }) => String(after))
      if (left.length > 0) throw new Error(`never seen: ${left.join(', ')}\n${screen}`)
      return { code, screen: screen.replaceAll('\r\n', '\n') }
    },
  }
}

/** Runs `affiliate` at a terminal of its own, and types when what is waited for has appeared. */
export function runInPty(args: readonly string[], options: PtyOptions = {}): Promise<PtyEnded> {
  const line = [process.execPath, ENTRY, ...args].map(quoted).join(' ')
  const command = `stty cols ${options.columns ?? 200} rows ${options.rows ?? 50}; exec ${line}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: options.folder,
    env: {
      ...environmentOf(options.environment),
      SHELL: '/bin/sh',
      TERM: options.environment?.TERM ?? 'xterm',
    },
    stdio: 'pipe',
  })
  const keyboard = typist(options.typed, (keys) => child.stdin.write(keys))
  child.stdout.setEncoding('utf8').on('data', keyboard.show)
  child.stdin.on('error', () => undefined)
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return keyboard.untilEnd(ended, () => child.kill('SIGKILL'))
}

/** As a person reads it. */
function plain(screen: string): string {
  return stripVTControlCharacters(screen).replaceAll('\r', '')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
