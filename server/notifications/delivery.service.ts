import { randomUUID } from 'node:crypto'
import { type ForgedRow, flagForgedRows } from '../flags/forged-rows.service.ts'
import type { ColumnTypes } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { GroupCommit } from '../platform/database/group-commit.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Digested } from '../platform/database/protected-tables.ts'
import type { Platform } from '../platform/platform.ts'
import type { LeaseQueue, Only } from '../platform/queue/lease-queue.ts'

/** A claim takes many, because a transaction for each attempt would take longer than the attempts. */
const MOST_CLAIMED = 200
const MOST_WRITTEN = 200
/** How many messages a process holds, beside one for each lane. */
const MOST_HELD = 2000
/** The parts of what is free that a lane and an account may hold: some stays free however many of them are slow. */
const PART_OF_LANE = 1 / 8
const PART_OF_ACCOUNT = 1 / 2
/** No attempt begins later than this after its claim. Also how long messages can go on after their recipient is suspended, ms. */
const BEGIN_WITHIN_MS = 5000
const WRITE_TIMEOUT_MS = 30_000

/** A claimed message: its row, whose `attempts` count this one, and what the attempt needs. */
interface Job<Row> {
  row: Row
  /** Of the rows that it is made from, the first that is not as the service wrote it. */
  forged: Forged | null
}

export interface Forged extends ForgedRow {
  table: Digested
}

interface QueuedRow {
  id: string
  lease_token: string | null
  attempts: number
}

/** How a channel delivers its queued messages. `Result` are the columns that an attempt writes. */
export interface Delivery<Row extends QueuedRow, J extends Job<Row>, Outcome, Result extends object> {
  queue: LeaseQueue<Row>
  /** The signal for messages that are due now. */
  signal: string
  /** Outlasts an attempt and the write of its outcome, ms. */
  leaseMs: number
  /** How long `stop` waits for attempts under way, ms. */
  graceMs: number
  /** Messages of one lane share a receiver: it delays no other lane. */
  laneOf(row: Row): string
  /** Attempts of one lane at the same time. */
  mostAtOnce: number
  /** The rows that may be claimed, which are none of these lanes. */
  only(db: Queries, fullLanes: readonly string[]): Only
  /** What is known of these lanes; nothing of those that are missing. */
  owners?(tx: Tx, lanes: readonly string[]): Promise<ReadonlyMap<string, LaneOwner>>
  load(rows: readonly Row[]): Promise<J[]>
  /** Does not throw. A forged message is refused without an attempt. */
  attempt(job: J): Promise<Outcome>
  /** Whether the stop may have ended the attempt: the message is due again, without counting it. */
  isCut(outcome: Outcome): boolean
  isFailure?(outcome: Outcome): boolean
  columns: ColumnTypes<Result>
  resultOf(job: J, outcome: Outcome): Result
  /** Follows from attempts, in the transaction that writes their results; not from forged messages. */
  settled?(tx: Tx, attempts: readonly { job: J; outcome: Outcome }[]): Promise<void>
  /** Ends the attempts under way. */
  close(): Promise<void> | void
}

/** An attempt that has ended; `null` for a message that is given back. */
interface Ended<J, Outcome> {
  job: J
  token: string
  outcome: Outcome | null
}

export interface LaneOwner {
  account: string
  /** The last attempt failed, here or in another process: the lane gets one message at a time. */
  failing: boolean
}

interface Lane extends LaneOwner {
  held: number
  running: number
  /** Begin attempts that wait for their turn. */
  waiting: (() => void)[]
}

/** The messages of a channel that this process delivers. */
export class Deliverer<Row extends QueuedRow, J extends Job<Row>, Outcome, Result extends object> {
  readonly #platform: Platform
  readonly #channel: Delivery<Row, J, Outcome, Result>
  readonly #ended: GroupCommit<Ended<J, Outcome>, null>
  readonly #lanes = new Map<string, Lane>()
  /** How many messages of each account are held. */
  readonly #byAccount = new Map<string, number>()
  /** By the ids of the messages. */
  readonly #work = new Map<string, Promise<void>>()
  /** Of the lanes of the last claim. */
  #owners: ReadonlyMap<string, LaneOwner> = new Map()
  #stopped = false

  constructor(platform: Platform, channel: Delivery<Row, J, Outcome, Result>) {
    this.#platform = platform
    this.#channel = channel
    this.#ended = new GroupCommit({
      write: (ended) => this.#settle(ended),
      maxBatch: MOST_WRITTEN,
      // All are held, which is what bounds them.
      maxWaiting: Number.POSITIVE_INFINITY,
      timeoutMs: WRITE_TIMEOUT_MS,
    })
  }

  /** Claims due messages, as many as there is room for, and begins to send them. Returns how many. */
  async start(): Promise<number> {
    if (this.#stopped) return 0
    const { database, clock } = this.#platform
    const { queue, leaseMs, load } = this.#channel
    const claimedAt = clock.now()
    const lease = { token: randomUUID(), until: claimedAt + leaseMs }
    const rows = await queue.claim(database, {
      now: claimedAt,
      limit: MOST_CLAIMED,
      lease,
      only: this.#only(),
      choose: (tx, due) => this.#choose(tx, due),
    })
    if (rows.length === 0) return 0
    const counted = rows.map((row) => ({ ...row, attempts: row.attempts + 1 }))
    const jobs = await load(counted).catch((error: unknown) => {
      queue.abandon(database, lease.token)
      throw error
    })
    for (const job of jobs) this.#begin(job, lease.token, claimedAt)
    return rows.length
  }

  /** When a message is due that this process has room for, epoch ms; `null` without one. */
  nextDueAt(): Promise<number | null> {
    return this.#channel.queue.nextDueAt(this.#platform.database.reader, this.#only())
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.values())
  }

  /** Sends all that is due, until nothing is, and returns how many there were: for tests and commands. */
  async untilIdle(): Promise<number> {
    let sent = 0
    for (let started = await this.start(); started > 0; started = await this.start()) {
      sent += started
      await this.idle()
    }
    return sent
  }

  /** Waits for attempts under way, then ends them: their messages are due again, as are waiting ones. */
  async stop(): Promise<void> {
    this.#stopped = true
    const timer = setTimeout(() => void this.#channel.close(), this.#channel.graceMs)
    await this.idle()
    clearTimeout(timer)
    await this.#channel.close()
  }

  /** Leaves lanes out that have more than half of what they may, so that each claim brings many. */
  #only(): Only {
    const full = [...this.#lanes].filter(([, lane]) => this.#isFull(lane)).map(([id]) => id)
    return this.#channel.only(this.#platform.database.reader, full)
  }

  #isFull(lane: Lane): boolean {
    return lane.held > Math.floor(this.#mostOf(lane, this.#work.size, this.#byAccount) / 2)
  }

  /** The most that a lane may hold, where `all` are held. */
  #mostOf({ held, account, failing }: Lane, all: number, byAccount: ReadonlyMap<string, number>): number {
    if (failing) return 1
    const free = MOST_HELD - all
    const ofAccount = Math.floor(free * PART_OF_ACCOUNT) - (byAccount.get(account) ?? 0) + held
    return Math.max(1, Math.min(Math.floor(free * PART_OF_LANE), ofAccount))
  }

  /** Those of the due messages that there is room for. A message under way is due again when the clock has jumped. */
  async #choose(tx: Tx, due: readonly Row[]): Promise<Row[]> {
    const { laneOf, owners } = this.#channel
    const found = new Set([...due.map(laneOf), ...this.#lanes.keys()])
    if (owners) this.#owners = await owners(tx, [...found])
    for (const [id, lane] of this.#lanes) lane.failing ||= this.#owners.get(id)?.failing ?? false
    const lanes = new Map([...found].map((id) => [id, { ...this.#laneOf(id) }]))
    const byAccount = new Map(this.#byAccount)
    let all = this.#work.size
    return due.filter((row) => {
      const lane = lanes.get(laneOf(row)) as Lane
      if (this.#work.has(row.id) || lane.held >= this.#mostOf(lane, all, byAccount)) return false
      hold(lane, byAccount, 1)
      all += 1
      return true
    })
  }

  #laneOf(id: string): Lane {
    const owner = this.#owners.get(id) ?? { account: id, failing: false }
    return this.#lanes.get(id) ?? { ...owner, held: 0, running: 0, waiting: [] }
  }

  #begin(job: J, token: string, claimedAt: number): void {
    const id = this.#channel.laneOf(job.row)
    const lane = this.#laneOf(id)
    this.#lanes.set(id, lane)
    hold(lane, this.#byAccount, 1)
    const work = this.#deliver(lane, job, claimedAt)
      .then((outcome) => this.#ended.add({ job, token, outcome }))
      .catch((error: unknown) => {
        const facts = { err: error, id: job.row.id, queue: this.#channel.signal }
        this.#platform.log.error(facts, 'the outcome of a delivery is lost')
      })
      .then(() => {
        this.#work.delete(job.row.id)
        hold(lane, this.#byAccount, -1)
        if (lane.held === 0) this.#lanes.delete(id)
        if (!this.#isFull(lane)) this.#platform.topics.send(this.#channel.signal)
      })
    this.#work.set(job.row.id, work)
  }

  /** `null` when the message is given back: without an attempt, or with one that the stop ended. */
  async #deliver(lane: Lane, job: J, claimedAt: number): Promise<Outcome | null> {
    const { mostAtOnce, attempt, isCut, isFailure } = this.#channel
    const waits = lane.running >= mostAtOnce
    if (waits) await new Promise<void>((resolve) => lane.waiting.push(resolve))
    else lane.running += 1
    try {
      const isLate = this.#platform.clock.now() - claimedAt > BEGIN_WITHIN_MS
      if (this.#stopped || isLate || (waits && lane.failing)) return null
      const outcome = await attempt(job)
      if (this.#stopped && isCut(outcome)) return null
      if (!job.forged && isFailure?.(outcome)) lane.failing = true
      return outcome
    } finally {
      const next = lane.waiting.shift()
      if (next) next()
      else lane.running -= 1
    }
  }

  /** Writes the outcomes of messages. One that changed meanwhile, or that another worker has claimed, stays as it is. */
  async #settle(ended: readonly Ended<J, Outcome>[]): Promise<null[]> {
    const { queue, columns, resultOf, settled } = this.#channel
    await this.#platform.database.transaction(async (tx) => {
      const back = ended.filter(({ outcome }) => outcome === null)
      for (const [token, some] of Map.groupBy(back, (one) => one.token)) {
        const ids = some.map(({ job }) => job.row.id)
        await queue.release(tx, token, ids)
      }
      const attempts = ended.flatMap(({ job, token, outcome }) =>
        outcome === null ? [] : [{ job, token, outcome }],
      )
      if (attempts.length === 0) return
      const results = attempts.map(({ job, token, outcome }) => {
        return { row_id: job.row.id, token, ...resultOf(job, outcome) }
      })
      const { rows } = await queue.completeManyStatement<Result>(tx, columns, results).execute(tx)
      const ids = new Set(rows.map(({ id }) => id))
      const held = attempts.filter(({ job }) => ids.has(job.row.id))
      const forged = new Map(held.flatMap(({ job: { forged } }) => (forged ? [[forged.id, forged]] : [])))
      for (const [table, rows] of Map.groupBy(forged.values(), (row) => row.table)) {
        await flagForgedRows(this.#platform, tx, table, rows)
      }
      await settled?.(
        tx,
        held.filter(({ job }) => job.forged === null),
      )
    })
    return ended.map(() => null)
  }
}

function hold(lane: Lane, byAccount: Map<string, number>, change: 1 | -1): void {
  lane.held += change
  const held = (byAccount.get(lane.account) ?? 0) + change
  if (held === 0) byAccount.delete(lane.account)
  else byAccount.set(lane.account, held)
}

/** The first of these rows that is not as the service wrote it; `null` if all are. */
export function firstForged(
  { keys }: Platform,
  rows: Partial<Record<Digested, { id: string } | undefined>>,
): Forged | null {
  for (const [table, row] of Object.entries(rows) as [Digested, { id: string } | undefined][]) {
    const problem = row ? rowProblem(keys, table, row) : null
    if (row && problem !== null) return { table, id: row.id, problem }
  }
  return null
}
