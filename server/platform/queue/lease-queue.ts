import { type RawBuilder, sql } from 'kysely'
import { type ColumnTypes, inList, valuesTable } from '../database/bulk-values.ts'
import { advisoryLock, type Database, dialectOf, type Queries, type Tx } from '../database/database.ts'

/** The greatest difference between the clocks of two workers, ms. A lease that ends later was given before a clock was set back. */
const CLOCK_TOLERANCE_MS = 5 * 60_000

/** A table whose open rows are worked on under a lease. */
export interface QueueTable<Row> {
  name: string
  /** Holds for rows that are not finished. */
  isOpen: RawBuilder<boolean>
  /** The column with the time from which a row may be claimed, epoch ms. */
  dueAt: keyof Row & string
  /** The column with the end of the lease, epoch ms. May be `dueAt`. */
  leaseUntil: keyof Row & string
  /** The column that counts claims. */
  attempts: keyof Row & string
  /** Rows with the same value in this column form a lane: one holder at a time, oldest row first. */
  lane?: { column: keyof Row & string; type: 'text' | 'uuid' }
  /** What else to set when a lease ends without a result. */
  released?: Partial<Row>
  /** No row is deferred for longer, ms. A row that is due later was deferred before a clock was set back. */
  maxDelayMs: number
}

/** A row of a queue. `lease_token` is `null` while no one holds it. */
interface QueueRow {
  id: string
  lease_token: string | null
}

/** Selects rows by a condition on their columns. */
export type Only = RawBuilder<boolean>

export interface Claim<Row> {
  /** Epoch ms. */
  now: number
  limit: number
  /** A fencing token, new for each claim, and the end of the lease, epoch ms. */
  lease: { token: string; until: number }
  only?: Only
  /** What else to set in the claimed rows. */
  set?: Partial<Row>
  /** Chooses from the due rows, which come oldest first. Must not leave out a row of a lane and choose a later one. */
  choose?: (tx: Tx, due: readonly Row[]) => Promise<readonly Row[]>
}

/** A row held under a lease. */
export interface Held {
  id: string
  token: string
}

/** The same for `completeManyStatement`. */
interface HeldRow {
  row_id: string
  token: string
}

const EVERY: Only = sql`true`

/**
 * A queue in a table. A claim leases due rows under a fencing token; a change counts only while that token still holds the row. A row whose
 * lease ran out can be claimed again, which ends all leases of other holders in its lane.
 *
 * Claims of one queue wait for each other: of two that run together, each could take a row of the same lane.
 */
export class LeaseQueue<Row extends QueueRow> {
  readonly #spec: QueueTable<Row>
  readonly #table: RawBuilder<unknown>
  readonly #dueAt: RawBuilder<number>
  readonly #leaseUntil: RawBuilder<number>
  /** Ends a lease. */
  readonly #ended: object
  /** Tokens that may hold rows although nothing works on them: the database was lost before it answered a claim or a release. */
  readonly #abandoned = new WeakMap<Database, Set<string>>()

  constructor(spec: QueueTable<Row>) {
    this.#spec = spec
    this.#table = sql.table(spec.name)
    this.#dueAt = sql.ref(spec.dueAt)
    this.#leaseUntil = sql.ref(spec.leaseUntil)
    this.#ended = { lease_token: null, ...(spec.leaseUntil !== spec.dueAt && { [spec.leaseUntil]: 0 }) }
  }

  /**
   * Leases due rows, oldest first, and counts an attempt for each. Skips lanes in which another holder has a row. Returns the rows as they
   * were before the claim. Opens no transaction while nothing is due.
   */
  async claim(database: Database, claim: Claim<Row>): Promise<Row[]> {
    await this.#releaseAbandoned(database)
    const { first, last } = await this.#dueTimes(database.reader, claim.only)
    const isOverdue = last !== null && last > claim.now + this.#spec.maxDelayMs
    if (first === null || (first > claim.now && !isOverdue)) return []
    const work = async (tx: Tx): Promise<Row[]> => {
      await advisoryLock(tx, `claim ${this.#spec.name}`)
      // PostgreSQL may not know yet how many rows are open, and how few of them are leased.
      if (database.dialect === 'postgresql') await sql`set local enable_seqscan = off`.execute(tx)
      if (isOverdue) await this.#makeOverdueDue(tx, claim)
      const { rows: due } = await this.dueStatement(claim).execute(tx)
      const chosen = due.length > 0 && claim.choose ? await claim.choose(tx, due) : due
      return chosen.length === 0 ? [] : this.#lease(tx, claim, chosen)
    }
    return database.transaction(work).catch((error: unknown) => {
      // It may have committed: only its answer may be lost.
      this.abandon(database, claim.lease.token)
      throw error
    })
  }

  /** Has the next claim release what this token holds, for when that cannot be done now: others need not wait for the lease's end. */
  abandon(database: Database, token: string): void {
    const tokens = this.#abandoned.get(database) ?? new Set()
    this.#abandoned.set(database, tokens.add(token))
  }

  async #releaseAbandoned(database: Database): Promise<void> {
    const tokens = [...(this.#abandoned.get(database) ?? [])]
    if (tokens.length === 0) return
    await database.transaction(async (tx) => {
      // A claim without an answer may still be under way.
      await advisoryLock(tx, `claim ${this.#spec.name}`)
      await this.#releaseWhere(tx, sql`${this.#spec.isOpen} and lease_token in (${sql.join(tokens)})`)
    })
    for (const token of tokens) this.#abandoned.get(database)?.delete(token)
  }

  async #lease(tx: Tx, claim: Claim<Row>, chosen: readonly Row[]): Promise<Row[]> {
    const ids = chosen.map(({ id }) => id)
    const { rows } = await this.leaseStatement(tx, claim, ids).execute(tx)
    // A holder whose lease ran out may have finished a row since it was read.
    const leased = new Set(rows.map(({ id }) => id))
    const claimed = chosen.filter(({ id }) => leased.has(id))
    const { lane } = this.#spec
    const lanes = lane ? new Set(claimed.map((row) => row[lane.column] as string)) : []
    await this.endOtherLeasesStatement(tx, claim, [...lanes])?.execute(tx)
    return claimed
  }

  /** When the next open row is due, whether it is held or not (epoch ms); `null` without one. */
  async nextDueAt(db: Queries, only?: Only): Promise<number | null> {
    return (await this.#dueTimes(db, only)).first
  }

  /** How many rows are open, up to `most`. */
  async countOpen(db: Queries, most: number): Promise<number> {
    const { rows } = await sql<{ open: number }>`
      select count(*) as open from (select 1 from ${this.#table} where ${this.#spec.isOpen} limit ${most}) as open_rows`.execute(
      db,
    )
    return Number(rows[0]?.open ?? 0)
  }

  /** Extends a lease. Returns false if the token does not hold the row. */
  renew(tx: Tx, held: Held, until: number, change: Partial<Row> = {}): Promise<boolean> {
    return this.#change(tx, held, { ...change, [this.#spec.leaseUntil]: until })
  }

  /** Ends a lease with a result. Returns false if the token does not hold the row. */
  complete(tx: Tx, held: Held, result: Partial<Row>): Promise<boolean> {
    return this.#change(tx, held, { ...this.#ended, ...result })
  }

  /**
   * Ends many leases, each with a result of its own. Returns the ids of the rows that their tokens held. Finds the rows by id, however many
   * others are open.
   */
  completeManyStatement<Result extends object>(
    db: Queries,
    columns: ColumnTypes<Result>,
    results: readonly (Result & HeldRow)[],
  ) {
    const types = { row_id: 'uuid', token: 'text', ...columns } as ColumnTypes<Result & HeldRow>
    const given = valuesTable('done', types)(dialectOf(db), results)
    const values = sql.join(Object.keys(columns).map((name) => sql`${sql.ref(name)} = done.${sql.ref(name)}`))
    const update = sql`
      update ${this.#table} as job set ${assignments(this.#ended)}, ${values}`
    const where = sql`job.id = done.row_id and coalesce(job.lease_token, '') = done.token returning id`
    if (dialectOf(db) === 'sqlite') return sql<{ id: string }>`${update} from ${given} where ${where}`
    // The array of a subquery leaves PostgreSQL no plan but one look-up for each id, whatever it knows of the table.
    return sql<{ id: string }>`
      with done as materialized (select * from ${given})
      ${update} from done where job.id = any(array(select row_id from done)) and ${where}`
  }

  /** Ends a lease without a result; the row is due at `dueAt` (epoch ms). Returns false if the token does not hold the row. */
  defer(tx: Tx, held: Held, dueAt: number, change: Partial<Row> = {}): Promise<boolean> {
    const { released, dueAt: column } = this.#spec
    return this.#change(tx, held, { ...this.#ended, ...released, ...change, [column]: dueAt })
  }

  async #change(tx: Tx, { id, token }: Held, values: object): Promise<boolean> {
    const { numAffectedRows } = await sql`
      update ${this.#table} set ${assignments(values)} where id = ${id} and lease_token = ${token}`.execute(
      tx,
    )
    return numAffectedRows === 1n
  }

  /** Ends the leases that the token holds on these rows, without counting their attempts. The rows stay due when they were. */
  release(tx: Tx, token: string, ids: readonly string[]): Promise<void> {
    return this.#releaseWhere(tx, sql`id ${inList(dialectOf(tx), 'uuid', ids)} and lease_token = ${token}`)
  }

  async #releaseWhere(tx: Tx, which: Only): Promise<void> {
    const attempts = sql.ref(this.#spec.attempts)
    await sql`
      update ${this.#table} set ${assignments({ ...this.#ended, ...this.#spec.released })}, ${attempts} = ${attempts} - 1
      where ${which}`.execute(tx)
  }

  /** Makes rows due that wait for longer than any row is deferred, held or not. */
  async #makeOverdueDue(tx: Tx, { now, only = EVERY }: Claim<Row>): Promise<void> {
    const { dueAt, released, maxDelayMs } = this.#spec
    await sql`
      update ${this.#table} set ${assignments({ ...this.#ended, ...released, [dueAt]: now })}
      where ${this.#spec.isOpen} and ${only} and ${this.#dueAt} > ${now + maxDelayMs}`.execute(tx)
  }

  async #dueTimes(db: Queries, only = EVERY): Promise<{ first: number | null; last: number | null }> {
    const open = sql`select ${this.#dueAt} from ${this.#table} where ${this.#spec.isOpen} and ${only} order by ${this.#dueAt}`
    const { rows } = await sql<{ first: number | null; last: number | null }>`
      select (${open} limit 1) as first, (${open} desc limit 1) as last`.execute(db)
    return rows[0] ?? { first: null, last: null }
  }

  /** The rows that a claim chooses from. */
  dueStatement({ now, lease, limit, only = EVERY }: Claim<Row>): RawBuilder<Row> {
    const lane = this.#spec.lane && sql.ref(this.#spec.lane.column)
    const isFree =
      lane &&
      sql`${lane} not in (
        select distinct ${lane} from ${this.#table} as held
        where lease_token is not null and not (${this.#hasExpired(now, lease)}))`
    return sql<Row>`
      select * from ${this.#table}
      where ${this.#spec.isOpen} and ${only} and ${this.#dueAt} <= ${now} and ${isFree ?? this.#hasExpired(now, lease)}
      order by ${this.#dueAt}, id limit ${limit}`
  }

  /** Finds the rows by id, however many others are open. */
  leaseStatement(db: Queries, { now, lease, set }: Claim<Row>, ids: readonly string[]) {
    const attempts = sql.ref(this.#spec.attempts)
    const leased = { lease_token: lease.token, [this.#spec.leaseUntil]: lease.until, ...set }
    return sql<{ id: string }>`
      update ${this.#table} set ${assignments(leased)}, ${attempts} = ${attempts} + 1
      where id ${inList(dialectOf(db), 'uuid', ids)} and ${withoutIndex(this.#spec.isOpen)}
        and ${withoutIndex(sql`${this.#dueAt} <= ${now}`)} and (${this.#hasExpired(now, lease)})
      returning id`
  }

  /** Ends the leases of other holders in these lanes, which have run out; `null` without lanes. */
  endOtherLeasesStatement(db: Queries, { lease }: Claim<Row>, lanes: readonly string[]) {
    const { lane, released } = this.#spec
    if (!lane || lanes.length === 0) return null
    return sql`
      update ${this.#table} set ${assignments({ ...this.#ended, ...released })}
      where lease_token is not null and lease_token <> ${lease.token}
        and ${sql.ref(lane.column)} ${inList(dialectOf(db), lane.type, lanes)}`
  }

  #hasExpired(now: number, { until }: Claim<Row>['lease']): RawBuilder<boolean> {
    return sql`${this.#leaseUntil} <= ${now} or ${this.#leaseUntil} > ${until + CLOCK_TOLERANCE_MS}`
  }
}

/** A condition that no planner takes an index for. */
function withoutIndex(condition: RawBuilder<boolean>): RawBuilder<boolean> {
  return sql`coalesce(${condition}, false)`
}

function assignments(values: object): RawBuilder<unknown> {
  return sql.join(Object.entries(values).map(([column, value]) => sql`${sql.ref(column)} = ${value}`))
}
