import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { interrupted as ctrlC, Failure, wrongUsage } from '../failures.ts'
import { printLines, printPrompt, terminalLine } from './printable-text.ts'

/** Asks questions at a terminal, on stderr: stdout is for the output of the command. */
export class Terminal {
  readonly #lines: Interface
  readonly #gone = new AbortController()
  #interrupted = false

  constructor() {
    this.#lines = createInterface({ input: process.stdin, output: process.stderr })
    this.#lines.once('SIGINT', () => {
      this.#interrupted = true
      this.#lines.close()
    })
    // Ctrl-C and Ctrl-D: a question would otherwise never be answered.
    this.#lines.once('close', () => this.#gone.abort())
  }

  /** Whether Ctrl-C ended it. */
  get interrupted(): boolean {
    return this.#interrupted
  }

  /** The answer, trimmed; `null` after Ctrl-C or Ctrl-D. */
  async ask(question: string): Promise<string | null> {
    const { signal } = this.#gone
    if (signal.aborted) return null
    try {
      return (await this.#lines.question(terminalLine(question), { signal })).trim()
    } catch (error) {
      if (!signal.aborted) throw error
      printLines([''], process.stderr)
      return null
    }
  }

  async agrees(question: string): Promise<boolean> {
    return /^y(es)?$/i.test((await this.ask(`${question} [y/N] `)) ?? '')
  }

  close(): void {
    this.#lines.close()
  }
}

const MOST_BYTES = 4096

/** A new password: typed twice without echo when stdin is a terminal, else the first line of stdin. Refuses an empty one. */
export async function readNewPassword(): Promise<string> {
  const password = process.stdin.isTTY ? await typedPassword() : await pipedPassword()
  if (password !== '') return password
  throw wrongUsage(process.stdin.isTTY ? 'No password was typed.' : 'No password came on stdin.')
}

async function pipedPassword(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.includes('\n') || text.length > MOST_BYTES) break
  }
  return (text.split('\n', 1)[0] ?? '').replace(/\r$/, '')
}

async function typedPassword(): Promise<string> {
  // Readline echoes what is typed to its output; this one swallows it.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  // Without history, because the arrow keys would bring the first password back.
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 })
  let interrupted = false
  terminal.once('SIGINT', () => {
    interrupted = true
    terminal.close()
  })
  // Keeps a line that is typed before it is asked for.
  const lines = terminal[Symbol.asyncIterator]()
  const ask = async (question: string) => {
    printPrompt(question)
    const { value, done } = await lines.next()
    printLines([''], process.stderr)
    if (interrupted) throw ctrlC()
    return done ? '' : String(value)
  }
  try {
    const password = await ask('Password: ')
    if (password === '' || (await ask('Password again: ')) === password) return password
  } finally {
    terminal.close()
  }
  throw new Failure('The passwords differ; nothing was done. Run it again.')
}
