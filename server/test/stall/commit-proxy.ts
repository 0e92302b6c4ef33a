import { isCommitOf, type Seam, Transactions } from '../kill/points.ts'
import { type CutMoment, openTcpProxy, type Tap, type TcpProxy } from '../testkit/tcp-proxy.ts'

/** A proxy before PostgreSQL that reads along, and cuts the line at a chosen commit. */
export interface CommitProxy extends TcpProxy {
  /**
   * Cuts the connection that says the next such commit: `before` the server hears it, so that it is taken back, or `after` it has
   * taken effect, so that only its answer is lost.
   */
  cutAt(seam: Seam, moment: CutMoment): void
  /** How often it has cut. */
  readonly cuts: number
}

interface Plan {
  cut: { seam: Seam; moment: CutMoment } | null
  cuts: number
}

export async function openCommitProxy(target: { host: string; port: number }): Promise<CommitProxy> {
  const plan: Plan = { cut: null, cuts: 0 }
  return {
    ...(await openTcpProxy(target, () => tapOf(plan))),
    cutAt: (seam, moment) => {
      plan.cut = { seam, moment }
    },
    get cuts() {
      return plan.cuts
    },
  }
}

const TYPE_BYTES = 1
const LENGTH_BYTES = 4
const QUERY = 'Q'.charCodeAt(0)
const PARSE = 'P'.charCodeAt(0)
const BIND = 'B'.charCodeAt(0)

function tapOf(plan: Plan): Tap {
  /** What the client has said and is no whole message yet. */
  let rest: Buffer = Buffer.alloc(0)
  /** The first message has no type. */
  let started = false
  const transactions = new Transactions()
  /** The texts of prepared statements: after the first time only their name is said. */
  const prepared = new Map<string, string>()

  /** The statement that a message has run: of a simple query, or of a prepared one whose values it brings. */
  const statementIn = (message: Buffer): string | null => {
    const texts = () => message.toString('utf8', TYPE_BYTES + LENGTH_BYTES).split('\0')
    if (message[0] === QUERY) return texts()[0] ?? null
    if (message[0] === PARSE) {
      const [name = '', text = ''] = texts()
      prepared.set(name, text)
    }
    if (message[0] !== BIND) return null
    const [, name = ''] = texts()
    return prepared.get(name) ?? null
  }

  const cutOf = (message: Buffer): CutMoment | null => {
    const sql = statementIn(message)
    const statements = sql === null ? null : transactions.endedBy(sql)
    const { cut } = plan
    if (statements === null || cut === null || !isCommitOf(cut.seam, statements)) return null
    plan.cut = null
    plan.cuts += 1
    return cut.moment
  }

  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    let end = 0
    let cut: CutMoment | null = null
    while (cut === null) {
      const head = started ? TYPE_BYTES : 0
      if (rest.length < end + head + LENGTH_BYTES) break
      const next = end + head + rest.readUInt32BE(end + head)
      if (rest.length < next) break
      cut = started ? cutOf(rest.subarray(end, next)) : null
      started = true
      if (cut !== 'before') end = next
    }
    const pass = rest.subarray(0, end)
    rest = rest.subarray(end)
    return cut === null ? { pass } : { pass, cut }
  }
}
