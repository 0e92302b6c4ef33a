import { fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A module in a process of its own that is talked to in messages. */
export interface Forked {
  send(message: unknown): void
  /** The next message from it. Rejects if it ends before. */
  next<T>(): Promise<T>
  /** Sends, and answers the next message from it. */
  ask<T>(message: unknown): Promise<T>
  /** Lines that it wrote to stderr. */
  complaints(): string[]
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals>
  kill(): void
}

export function forkModule(module: URL, ...args: string[]): Forked {
  const path = fileURLToPath(module)
  const child = fork(path, args, { silent: true })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'exit').then(([code, signal]) => code ?? signal)
  const early = ended.then((end) =>
    Promise.reject(new Error(`${basename(path)} ended with ${end}: ${stderr}`)),
  )
  // An end that nothing waits for is no error.
  early.catch(() => {})
  const next = async <T>() => (await Promise.race([once(child, 'message'), early]))[0] as T
  return {
    send(message) {
      if (child.connected) child.send(message as object)
    },
    next,
    ask(message) {
      const answer = next<never>()
      this.send(message)
      return answer
    },
    complaints: () => stderr.split('\n').filter(Boolean),
    ended,
    kill: () => void child.kill(),
  }
}
