import { connect, createServer, type Socket } from 'node:net'
import { isCommitOf, type Seam, Transactions } from '../kill/points.ts'

/** Stands between the service and PostgreSQL, reads along, and holds or cuts the line at a chosen word. */
export interface PostgresProxy {
  port: number
  /** Keeps every connection and passes nothing on, either way. */
  stall(): void
  /** Passes on what was held, in order, and all that follows. */
  flow(): void
  /**
   * Cuts the connection that says the next such commit: `before` the server hears it, so that it is taken back, or `after` it has
   * taken effect, so that only its answer is lost.
   */
  cutAt(seam: Seam, moment: CutMoment): void
  /** How often it has cut. */
  readonly cuts: number
  close(): Promise<void>
}

export type CutMoment = 'before' | 'after'

interface Shared {
  stalled: boolean
  cut: { seam: Seam; moment: CutMoment } | null
  cuts: number
}

export async function openPostgresProxy(target: { host: string; port: number }): Promise<PostgresProxy> {
  const shared: Shared = { stalled: false, cut: null, cuts: 0 }
  const lines = new Set<Line>()
  const server = createServer((client) => {
    const line = new Line(shared, client, connect(target), () => lines.delete(line))
    lines.add(line)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as { port: number }).port,
    stall: () => {
      shared.stalled = true
    },
    flow: () => {
      shared.stalled = false
      for (const line of lines) line.passOn()
    },
    cutAt: (seam, moment) => {
      shared.cut = { seam, moment }
    },
    get cuts() {
      return shared.cuts
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const line of lines) line.end()
      }),
  }
}

const TYPE_BYTES = 1
const LENGTH_BYTES = 4
const QUERY = 'Q'.charCodeAt(0)
const PARSE = 'P'.charCodeAt(0)
const BIND = 'B'.charCodeAt(0)

/** One connection, both ways. */
class Line {
  readonly #shared: Shared
  readonly #client: Socket
  readonly #upstream: Socket
  #held: (() => void)[] = []
  /** What the client has said and is no whole message yet. */
  #rest: Buffer = Buffer.alloc(0)
  /** The first message has no type. */
  #started = false
  readonly #transactions = new Transactions()
  /** The texts of prepared statements: after the first time only their name is said. */
  readonly #prepared = new Map<string, string>()
  #cutAtAnswer = false

  constructor(shared: Shared, client: Socket, upstream: Socket, onEnd: () => void) {
    this.#shared = shared
    this.#client = client
    this.#upstream = upstream
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      socket.on('error', () => this.end())
      socket.on('close', () => {
        this.end()
        onEnd()
      })
    }
    client.on('data', (bytes) => this.#pass(() => this.#toServer(bytes)))
    upstream.on('data', (bytes) => this.#pass(() => this.#toClient(bytes)))
  }

  passOn(): void {
    for (const pass of this.#held.splice(0)) pass()
  }

  end(): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }

  #pass(work: () => void): void {
    if (this.#shared.stalled) this.#held.push(work)
    else work()
  }

  #toClient(bytes: Buffer): void {
    if (this.#cutAtAnswer) this.end()
    else this.#client.write(bytes)
  }

  #toServer(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      const head = this.#started ? TYPE_BYTES : 0
      if (this.#rest.length < head + LENGTH_BYTES) return
      const length = head + this.#rest.readUInt32BE(head)
      if (this.#rest.length < length) return
      const message = this.#rest.subarray(0, length)
      this.#rest = this.#rest.subarray(length)
      if (this.#started && !this.#lets(message)) return
      this.#started = true
      this.#upstream.write(message)
    }
  }

  /** False when the line is cut instead of passing the message on. */
  #lets(message: Buffer): boolean {
    const sql = this.#statementIn(message)
    const statements = sql === null ? null : this.#transactions.endedBy(sql)
    const { cut } = this.#shared
    if (statements === null || cut === null || !isCommitOf(cut.seam, statements)) return true
    this.#shared.cut = null
    this.#shared.cuts += 1
    if (cut.moment === 'after') this.#cutAtAnswer = true
    else this.end()
    return cut.moment === 'after'
  }

  /** The statement that a message has run: of a simple query, or of a prepared one whose values it brings. */
  #statementIn(message: Buffer): string | null {
    const texts = () => message.toString('utf8', TYPE_BYTES + LENGTH_BYTES).split('\0')
    if (message[0] === QUERY) return texts()[0] ?? null
    if (message[0] === PARSE) {
      const [name = '', text = ''] = texts()
      this.#prepared.set(name, text)
    }
    if (message[0] !== BIND) return null
    const [, name = ''] = texts()
    return this.#prepared.get(name) ?? null
  }
}
