import { connect, createServer, type Server, type Socket } from 'node:net'

/** Stands between the service and its database, and can take the database away. */
export interface CuttableProxy {
  port: number
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>
  /** Lets connections through again. */
  mend(): Promise<void>
  /** Keeps connections open and passes nothing on. */
  stall(): void
  /** As a machine that lost its power: connections stay open and pass nothing on, new ones are refused until they are let through again. */
  vanish(): void
  /** Passes on what waited and all that follows. */
  flow(): void
  close(): Promise<void>
}

export async function openCuttableProxy(target: { host: string; port: number }): Promise<CuttableProxy> {
  const sockets = new Set<Socket>()
  let stalled = false
  const serve = () =>
    createServer((client) => {
      const upstream = connect(target)
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(from)
        from.on('error', () => to.destroy())
        from.on('close', () => {
          sockets.delete(from)
          to.destroy()
        })
        from.pipe(to)
        if (stalled) from.pause()
      }
    })
  const listen = (server: Server, port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
  let server = serve()
  await listen(server, 0)
  const { port } = server.address() as { port: number }
  const stall = () => {
    stalled = true
    for (const socket of sockets) {
      socket.unpipe()
      socket.pause()
    }
  }
  const cut = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    port,
    cut,
    async mend() {
      stalled = false
      server = serve()
      await listen(server, port)
    },
    stall,
    vanish() {
      stall()
      // Stops listening; its end waits for the open connections.
      server.close()
    },
    flow() {
      stalled = false
      // A pipe that was taken apart cannot be put together without losing its place: those connections end.
      for (const socket of sockets) socket.destroy()
    },
    close: cut,
  }
}
