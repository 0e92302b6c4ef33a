import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { Failure, Interrupted, wrongUsage } from '../failures.ts'
import { printLines, printPrompt } from './printable-text.ts'

const MOST_BYTES = 4096

/** Refuses (exit 2) where a password can neither be typed nor was promised on stdin. */
export function requirePasswordSource(options: { passwordStdin?: boolean }): void {
  if (options.passwordStdin || (process.stdin.isTTY && process.stderr.isTTY)) return
  throw wrongUsage('Not a terminal; pass the password on stdin with --password-stdin.')
}

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
    if (interrupted) throw new Interrupted()
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
