import { printLines, printPrompt } from './printable-text.ts'

const MOST_BYTES = 4096

/** The first line of stdin; typed without echo when stdin is a terminal. */
export async function readPassword(): Promise<string> {
  return process.stdin.isTTY ? typedPassword() : pipedPassword()
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
  const { createInterface } = await import('node:readline/promises')
  const { Writable } = await import('node:stream')
  // Readline echoes what is typed to its output; this one swallows it.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true })
  printPrompt('Password: ')
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    printLines([''], process.stderr)
  }
}
