import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

/** Collects the end of what a process writes to stderr. */
export function collectErrors(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4000)
  })
  return () => text.trim()
}

/** Waits until a PostgreSQL server, also a standby, accepts connections. Resolves to false if it ends before. */
export function untilReady(server: ChildProcess, errors: () => string): Promise<boolean> {
  return new Promise((resolve) => {
    server.stderr?.on(
      'data',
      () => /ready to accept (read-only )?connections/.test(errors()) && resolve(true),
    )
    server.on('close', () => resolve(false))
  })
}
