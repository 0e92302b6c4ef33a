import { connect, createServer, type Socket } from 'node:net'

/** A load balancer in front of PostgreSQL that leads to the primary, as HAProxy with `on-marked-down shutdown-sessions` does. */
export interface PrimaryProxy {
  port: number
  /** Leads new sessions to this server; those that lead to another one end. */
  follow(port: number): void
  /** Ends every session and refuses new ones: no server is the primary. */
  markDown(): void
  close(): Promise<void>
}

export async function openPrimaryProxy(first: number): Promise<PrimaryProxy> {
  let target: number | null = first
  const sessions = new Set<Socket>()
  const endSessions = () => {
    for (const socket of sessions) socket.destroy()
  }
  const server = createServer((client) => {
    if (target === null) {
      client.destroy()
      return
    }
    const upstream = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sessions.add(from)
      from.setNoDelay(true)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sessions.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as { port: number }).port,
    follow(port) {
      if (port !== target) endSessions()
      target = port
    },
    markDown() {
      target = null
      endSessions()
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        endSessions()
      }),
  }
}
