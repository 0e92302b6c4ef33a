// Loaded before the real server (`node --import`), so that a proof can have it die at a named point, and move its clock,
// without a word about either in the server's own code.
import diagnostics from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { isCommitOf, type Moment, type Target, Transactions } from './points.ts'

export type ScheduledJob = 'billing' | 'payouts'

export type Order =
  /** Die at the target the next time that it is reached, or with `cut` only lose the connection to PostgreSQL. */
  | { kind: 'arm'; target: Target; cut?: true }
  /** Fails unless the target was reached. */
  | { kind: 'reached' }
  /** How far this process's clock stands before the machine's, ms. */
  | { kind: 'clock'; ahead: number }
  /** Run a scheduled job now, as cron would. */
  | { kind: 'schedule'; job: ScheduledJob }

let target: Target | null = process.env.KILL_AT ? JSON.parse(process.env.KILL_AT) : null
let cuts = false
let ahead = Number(process.env.CLOCK_AHEAD ?? 0)

const machineTime = Date.now.bind(Date)
Date.now = () => machineTime() + ahead

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function isTarget(moment: Moment, statements: readonly string[]): boolean {
  return target?.moment === moment && isCommitOf(target.point.seam, statements)
}

/** What one connection has said since its transaction began. */
class Listener {
  readonly #transactions = new Transactions()

  /** Runs `send`, and dies around it if it is the commit that is meant, or has `cut` do without it or without its answer. */
  around<T>(sql: string, send: () => T, cut?: (moment: Moment) => void): T {
    const statements = this.#transactions.endedBy(sql)
    if (statements === null) return send()
    if (cuts && cut && target && isTarget(target.moment, statements)) {
      cut(target.moment)
      target = null
    }
    if (isTarget('before', statements)) die()
    const result = send()
    if (isTarget('sent', statements)) die()
    const answered = () => {
      if (isTarget('after', statements)) die()
    }
    if (!(result instanceof Promise)) answered()
    else result.then(answered, () => undefined)
    return result
  }
}

const listeners = new WeakMap<object, Listener>()

function listenerOf(connection: object): Listener {
  const listener = listeners.get(connection) ?? new Listener()
  listeners.set(connection, listener)
  return listener
}

async function watchSqlite(): Promise<void> {
  const { default: Sqlite } = await import('better-sqlite3')
  const prepare = Sqlite.prototype.prepare
  Sqlite.prototype.prepare = function (this: object, sql: string) {
    const statement = prepare.call(this as InstanceType<typeof Sqlite>, sql)
    for (const name of ['run', 'all'] as const) {
      const original = statement[name].bind(statement) as (...values: unknown[]) => unknown
      const watched = (...values: unknown[]) => listenerOf(this).around(sql, () => original(...values))
      statement[name] = watched as never
    }
    return statement
  } as typeof prepare
}

const DATABASE_CLOCK = 'clock_timestamp()'

/** The clock of the database's host stands as far before the machine's as that of this process. */
function withMovedClock(statement: string | { text: string }): string | { text: string } {
  const moved = (sql: string) =>
    sql.replaceAll(DATABASE_CLOCK, `(${DATABASE_CLOCK} + interval '${ahead} milliseconds')`)
  return typeof statement === 'string' ? moved(statement) : { ...statement, text: moved(statement.text) }
}

async function watchPostgres(): Promise<void> {
  const { Client } = await import('pg')
  const query = Client.prototype.query as (...parts: unknown[]) => unknown
  Client.prototype.query = function (this: object, ...parts: unknown[]) {
    const [statement] = parts as [string | { text: string }]
    const sql = typeof statement === 'string' ? statement : statement.text
    const [, ...rest] = parts
    const first = sql.includes(DATABASE_CLOCK) ? withMovedClock(statement) : statement
    const { stream } = (this as { connection: { stream: Socket } }).connection
    const cut = (moment: Moment) => {
      if (moment === 'before') return stream.destroy()
      stream.removeAllListeners('data').once('data', () => stream.destroy())
    }
    return listenerOf(this).around(sql, () => query.apply(this, [first, ...rest]), cut)
  } as typeof Client.prototype.query
}

const MOMENT_OF = {
  'undici:request:create': 'before',
  'undici:request:bodySent': 'sent',
  'undici:request:headers': 'after',
} as const satisfies Record<string, Moment>

function watchCalls(): void {
  for (const [channel, moment] of Object.entries(MOMENT_OF)) {
    diagnostics.subscribe(channel, (message) => {
      const { method, path } = (message as { request: { method: string; path: string } }).request
      const seam = target?.point.seam
      if (!seam || !('call' in seam) || target?.moment !== moment) return
      if (`${method} ${path.split('?')[0]}` === seam.call) die()
    })
  }
}

/** The end of a mail's text (RFC 5321, section 4.1.1.4). */
const END_OF_MAIL = /(?:^|\r\n)\.\r\n$/

/** A mail goes over a plain connection, whose lines can be read here. */
function watchMails(): void {
  const isTarget = (moment: Moment) =>
    target !== null && 'mail' in target.point.seam && target.moment === moment
  const write = Socket.prototype.write as (...parts: unknown[]) => boolean
  Socket.prototype.write = function (this: Socket, ...parts: unknown[]): boolean {
    const [chunk] = parts
    if (target === null || !('mail' in target.point.seam)) return write.apply(this, parts)
    const text = typeof chunk === 'string' || chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : ''
    if (isTarget('before') && text.startsWith('MAIL FROM:')) die()
    const isSent = write.apply(this, parts)
    if (END_OF_MAIL.test(text)) {
      if (isTarget('sent')) die()
      this.prependOnceListener('data', () => {
        if (isTarget('after')) die()
      })
    }
    return isSent
  }
}

async function runSchedule(job: ScheduledJob): Promise<void> {
  const { getTasks } = await import('node-cron')
  const task = [...getTasks().values()].find(({ name }) => name === job)
  if (!task) throw new Error(`no scheduled job is called ${job}`)
  await task.execute()
}

async function obey(order: Order): Promise<void> {
  if (order.kind === 'arm') {
    target = order.target
    cuts = order.cut === true
  } else if (order.kind === 'reached') {
    if (target) throw new Error('the target was not reached')
  } else if (order.kind === 'clock') ahead = order.ahead
  else await runSchedule(order.job)
}

process.on('message', (order: Order) => {
  obey(order).then(
    () => process.send?.('done'),
    (error) => process.send?.(String(error)),
  )
})
// The controlling process must not keep the server alive, and ends it when it ends itself.
process.channel?.unref()
process.on('disconnect', die)
await (process.env.DATABASE_URL?.startsWith('postgres') ? watchPostgres() : watchSqlite())
watchCalls()
watchMails()
