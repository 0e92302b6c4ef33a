import { connect, createServer, type Socket } from 'node:net'

export type TcpProxy = Awaited<ReturnType<typeof openTcpProxy>>

/** Stands between clients and a server, often the service and its database. Passes everything on until it is asked for trouble. */
export async function openTcpProxy(target: { host: string; port: number }) {
  const lines = new Set<Line>()
  let toPort: number | null = target.port
  let stalled = false
  const server = createServer((client) => {
    if (toPort === null) return void client.destroy()
    const line = new Line(client, connect(toPort, target.host), () => lines.delete(line))
    line.holds = stalled
    lines.add(line)
  })
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
  const hold = (holds: boolean) => {
    stalled = holds
    for (const line of lines) line.holds = holds
  }
  const endLines = () => {
    for (const line of lines) line.end()
  }
  /** Breaks every connection and refuses new ones. */
  const cut = async () => {
    // Its end waits for the open connections.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    endLines()
    await closed
  }
  await listen(0)
  const { port } = server.address() as { port: number }
  return {
    port,
    cut,
    /** As a machine that lost its power: connections stay open and pass nothing on, new ones are refused. */
    vanish() {
      hold(true)
      server.close()
    },
    /** Takes new connections again, after `cut` or `vanish`. */
    async mend() {
      stalled = false
      await listen(port)
    },
    /** Keeps every connection and passes nothing on, either way. */
    stall: () => hold(true),
    /** Passes on what was held, in order, and all that follows. */
    flow() {
      hold(false)
      for (const line of lines) line.passOn()
    },
    /** Leads new connections to this port, or to none for `null`; those that lead to another one end. */
    follow(next: number | null) {
      if (next !== toPort) endLines()
      toPort = next
    },
    close: cut,
  }
}

/** One connection, both ways. */
class Line {
  holds = false
  readonly #ends: readonly [client: Socket, upstream: Socket]
  #held: (() => void)[] = []

  constructor(client: Socket, upstream: Socket, onEnd: () => void) {
    this.#ends = [client, upstream]
    for (const socket of this.#ends) {
      socket.setNoDelay(true)
      socket.on('error', () => this.end())
      socket.on('close', () => {
        this.end()
        onEnd()
      })
    }
    client.on('data', (bytes) => this.#pass(() => upstream.write(bytes)))
    upstream.on('data', (bytes) => this.#pass(() => client.write(bytes)))
  }

  passOn(): void {
    for (const pass of this.#held.splice(0)) pass()
  }

  end(): void {
    for (const socket of this.#ends) socket.destroy()
  }

  #pass(work: () => void): void {
    if (this.holds) this.#held.push(work)
    else work()
  }
}
