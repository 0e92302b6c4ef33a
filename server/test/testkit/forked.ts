import { fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Forked = ReturnType<typeof forkModule>

/** Runs a module in a process of its own that exchanges messages with this one. */
export function forkModule(module: URL, ...args: string[]) {
  const path = fileURLToPath(module)
  const child = fork(path, args, { silent: true })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  /** The exit code, or the signal that ended it. */
  const ended = once(child, 'exit').then(([code, signal]): number | NodeJS.Signals => code ?? signal)
  const early = ended.then((end) =>
    Promise.reject(new Error(`${basename(path)} ended with ${end}: ${stderr}`)),
  )
  // An end that nothing waits for is no error.
  early.catch(() => {})
  /** The next message from it. Rejects if it ends before. */
  const next = async <T>() => (await Promise.race([once(child, 'message'), early]))[0] as T
  const send = (message: unknown) => {
    if (child.connected) child.send(message as object)
  }
  return {
    ...{ send, next, ended },
    /** Sends, and returns the next message from it. */
    ask<T>(message: unknown): Promise<T> {
      const answer = next<T>()
      send(message)
      return answer
    },
    /** Lines that it wrote to stderr. */
    complaints: () => stderr.split('\n').filter(Boolean),
    kill: () => void child.kill(),
  }
}
