// long
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { pluck } from '../../test/testkit/pluck.ts'
import { fc } from '../../test/testkit/property.ts'
import { type Claim, type Held, LeaseQueue, type QueueTable } from './lease-queue.ts'

interface Row {
  id: string
  lane: string
  state: 'queued' | 'running' | 'done'
  due_at: number
  lease_until: number
  lease_token: string | null
  attempts: number
}

const MAX_DELAY_MS = 1000
const COLUMNS = { dueAt: 'due_at', attempts: 'attempts' } as const
const COMMON = { name: 'work', isOpen: sql<boolean>`state <> 'done'`, maxDelayMs: MAX_DELAY_MS, ...COLUMNS }
const LANE = { column: 'lane', type: 'text' } as const
/** The shapes of the inbox, of attempts and of exports. */
const SHAPES: Record<string, QueueTable<Row>> = {
  'with lanes': { ...COMMON, leaseUntil: 'lease_until', lane: LANE },
  'without lanes': { ...COMMON, leaseUntil: 'lease_until' },
  'whose leases end when due': { ...COMMON, leaseUntil: 'due_at', lane: LANE, released: { state: 'queued' } },
}

const idOf = (place: number) => `01900000-0000-7000-8000-${String(place).padStart(12, '0')}`

/** Each claim has a holder of its own. */
interface Holder {
  token: string
  ids: string[]
}

class World {
  readonly queue: LeaseQueue<Row>
  readonly #of: QueueTable<Row>
  readonly #db: TestDatabase['database']
  readonly holders: Holder[] = []
  #tokens = 0
  now = 10_000

  constructor(of: QueueTable<Row>, { database }: TestDatabase) {
    this.queue = new LeaseQueue(of)
    this.#of = of
    this.#db = database
  }

  async open(rows: readonly { lane: number; dueIn: number }[]): Promise<this> {
    await sql`delete from work`.execute(this.#db.writer)
    for (const [place, { lane, dueIn }] of rows.entries()) {
      const row = sql`${idOf(place)}, ${`lane ${lane}`}, 'queued', ${this.now + dueIn}, 0, null, 0`
      await sql`insert into work values (${row})`.execute(this.#db.writer)
    }
    return this
  }

  async rows(): Promise<Row[]> {
    return (await sql<Row>`select * from work order by due_at, id`.execute(this.#db.writer)).rows
  }

  async claim(limit: number, leaseMs: number): Promise<Row[]> {
    const token = `token ${this.#tokens++}`
    const lease = { token, until: this.now + leaseMs }
    const claim: Claim<Row> = { now: this.now, limit, lease, set: { state: 'running' } }
    const rows = await this.queue.claim(this.#db, claim)
    this.holders.push({ token, ids: rows.map(({ id }) => id) })
    return rows
  }

  /** Rows under a lease that has not ended. */
  held(rows: readonly Row[]): Row[] {
    return rows.filter((row) => row.lease_token !== null && Number(row[this.#of.leaseUntil]) > this.now)
  }

  /** What a claim of all must return: due rows without a live lease, in their lane or on their own. */
  claimable(rows: readonly Row[]): Row[] {
    const keyOf = (row: Row) => (this.#of.lane ? row.lane : row.id)
    const taken = new Set(this.held(rows).map(keyOf))
    return rows.filter((row) => row.state !== 'done' && row.due_at <= this.now && !taken.has(keyOf(row)))
  }

  change(held: Held, how: (typeof CHANGES)[number]): Promise<boolean> {
    return this.#db.transaction(async (tx) => {
      if (how === 'complete') return this.queue.complete(tx, held, { state: 'done' })
      if (how === 'defer') return this.queue.defer(tx, held, this.now + MAX_DELAY_MS, { state: 'queued' })
      if (how === 'renew') return this.queue.renew(tx, held, this.now + 100)
      const results = [{ row_id: held.id, token: held.token, state: 'done' as const }]
      const statement = this.queue.completeManyStatement<Pick<Row, 'state'>>(tx, { state: 'text' }, results)
      const done = await statement.execute(tx)
      return done.rows.length === 1
    })
  }

  release({ token, ids }: Holder): Promise<void> {
    return this.#db.transaction((tx) => this.queue.release(tx, token, ids))
  }
}

const rowToWorkOn = fc.record({ lane: fc.nat(2), dueIn: fc.integer({ min: -50, max: 100 }) })
const rowsToWorkOn = fc.array(rowToWorkOn, { minLength: 1, maxLength: 8 })
const CHANGES = ['complete', 'completeMany', 'defer', 'renew'] as const
const limit = fc.integer({ min: 1, max: 8 })
const step = fc.oneof(
  fc.record({ do: fc.constant('claim' as const), limit, leaseMs: fc.nat(100) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.nat(120) }),
  fc.record({ do: fc.constantFrom(...CHANGES), holder: fc.nat(20), row: fc.nat(8) }),
  fc.record({ do: fc.constant('release' as const), holder: fc.nat(20) }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

for (const dialect of testDialects()) {
  const numRuns = dialect === 'sqlite' ? 150 : 40
  for (const [shape, table] of Object.entries(SHAPES)) {
    const it = suite<{ database: TestDatabase }>(`a lease queue ${shape} on ${dialect}`)
    it.before(async (context) => {
      context.database = await openTestDatabase(dialect, { migrated: false })
      const columns = sql`id ${dialect === 'sqlite' ? sql`text` : sql`uuid`} primary key, lane text not null,
        state text not null, due_at bigint not null, lease_until bigint not null, lease_token text,
        attempts int not null`
      await sql`create table work (${columns})`.execute(context.database.database.writer)
    })
    it.after(({ database }) => database.close())

    /** Does one step, and checks everything that must hold around it. */
    const take = async (world: World, one: Step) => {
      const before = await world.rows()
      if (one.do === 'pass') world.now += one.ms
      else if (one.do === 'claim') {
        const expected = world.claimable(before).slice(0, one.limit)
        const claimed = await world.claim(one.limit, one.leaseMs)
        // In order, each without another holder, and none left out: an expired lease is claimable.
        assert.equal(claimed, expected)
        const after = await world.rows()
        const { token } = world.holders.at(-1) as Holder
        for (const row of after) {
          const isMine = claimed.some(({ id }) => id === row.id)
          const former = before.find(({ id }) => id === row.id)
          assert.is(row.lease_token === token, isMine)
          assert.is(row.attempts, (former?.attempts ?? 0) + Number(isMine))
          // A claim ends all other leases of its lane.
          if (table.lane && claimed.some(({ lane }) => lane === row.lane))
            assert.ok(isMine || row.lease_token === null)
        }
        const holders = Map.groupBy(world.held(after), (row) => (table.lane ? row.lane : row.id))
        for (const rows of holders.values())
          assert.is(new Set(rows.map(({ lease_token }) => lease_token)).size, 1, 'two holders')
      } else {
        const holder = world.holders.at(one.holder % Math.max(1, world.holders.length))
        const id = holder && 'row' in one ? holder.ids[one.row % Math.max(1, holder.ids.length)] : undefined
        if (!holder) return
        if (one.do === 'release') {
          await world.release(holder)
          const after = await world.rows()
          assert.not(after.some(({ lease_token }) => lease_token === holder.token))
          // The claim of a released row does not count.
          for (const { id: mine, attempts, lease_token } of before) {
            const { attempts: left } = after.find((row) => row.id === mine) ?? {}
            assert.is(left, attempts - Number(lease_token === holder.token))
          }
        } else if (id !== undefined) {
          // The token decides, not the time: a stale holder changes nothing.
          const isHolder = before.find((row) => row.id === id)?.lease_token === holder.token
          assert.is(await world.change({ id, token: holder.token }, one.do), isHolder)
          if (!isHolder) assert.equal(await world.rows(), before)
        }
      }
    }

    it('never has two holders, gives expired rows again, and ignores stale holders', async ({ database }) => {
      const steps = fc.array(step, { minLength: 1, maxLength: 20 })
      const holds = async (rows: { lane: number; dueIn: number }[], all: Step[]) => {
        const world = await new World(table, database).open(rows)
        for (const one of all) await take(world, one)
      }
      await fc.assert(fc.asyncProperty(rowsToWorkOn, steps, holds), { numRuns })
    })

    it('applies a lane in order, also after crashes', async ({ database }) => {
      const crashes = fc.array(fc.boolean(), { maxLength: 12 })
      const holds = async (rows: { lane: number; dueIn: number }[], crashed: boolean[]) => {
        const world = await new World(table, database).open(rows)
        world.now += 100
        const order = (await world.rows()).map(({ id, lane }) => ({ id, lane }))
        const done: string[] = []
        for (let round = 0; done.length < rows.length; round += 1) {
          for (const { id } of await world.claim(2, 50)) {
            if (crashed[round]) break
            const token = (world.holders.at(-1) as Holder).token
            if (await world.change({ id, token }, 'complete')) done.push(id)
          }
          world.now += 60
        }
        const lanes =
          table.lane && shape === 'with lanes' ? Map.groupBy(order, ({ lane }) => lane) : new Map()
        for (const inOrder of lanes.values()) {
          const ids = inOrder.map(({ id }: { id: string }) => id)
          const inTurn = done.filter((id) => ids.includes(id))
          assert.equal(inTurn, ids)
        }
        assert.is(new Set(done).size, rows.length)
      }
      await fc.assert(fc.asyncProperty(rowsToWorkOn, crashes, holds), { numRuns: numRuns / 2 })
    })

    it('gives claims that run together different rows and lanes', async ({ database }) => {
      const holds = async (rows: { lane: number; dueIn: number }[], limits: number[]) => {
        const world = await new World(table, database).open(rows)
        world.now += 100
        const claims = await Promise.all(limits.map((limit) => world.claim(limit, 50)))
        const keys = claims.map((claimed) => new Set(claimed.map((row) => (table.lane ? row.lane : row.id))))
        const all = keys.flatMap((some) => [...some])
        assert.is(new Set(all).size, all.length)
      }
      const limits = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 5 })
      await fc.assert(fc.asyncProperty(rowsToWorkOn, limits, holds), { numRuns: numRuns / 2 })
    })

    it('gives rows of the far future, held or not: the clock was set back', async ({ database }) => {
      const world = await new World(table, database).open([{ lane: 0, dueIn: 0 }])
      const [first] = await world.claim(1, 100)
      world.now -= 3_600_000
      assert.equal(pluck(await world.claim(1, 100), 'id'), [first?.id])
      assert.not(await world.change({ id: first?.id ?? '', token: 'token 0' }, 'complete'))
    })

    it.run()
  }
}
