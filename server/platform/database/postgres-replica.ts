import { Kysely, PostgresDialect } from 'kysely'
import type { BoundedPool } from './postgres-pool.ts'
import type { Schema } from './schema.ts'

/** A replica that is further behind is not used, ms. */
const MOST_LAG_MS = 5000
const CHECK_EVERY_MS = 1000
const KEPT_POSITIONS = 60
/** How long `reaches` waits, ms. */
const CATCH_UP_MS = 1000

const PRIMARY_POSITION = 'select pg_current_wal_lsn()::text as position'
const REPLICA_POSITION = `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
  else pg_current_wal_lsn() end::text as position`

/**
 * A replica for reads that may be some seconds old. How old, is known by its position in the write-ahead log: it has at least what the
 * primary had when that was at this position. So neither clocks nor a replica that has lost its primary deceive it.
 */
export class Replica {
  readonly reader: Kysely<Schema>
  readonly #pool: BoundedPool
  readonly #primary: BoundedPool
  readonly #timer: NodeJS.Timeout
  /** The primary's positions, oldest first. `at` is by performance.now(). */
  readonly #positions: { at: number; position: bigint }[] = []
  /** The replica has what the primary had at this time. */
  #freshAt = Number.NEGATIVE_INFINITY
  #checking = false

  constructor(pool: BoundedPool, primary: BoundedPool) {
    this.#pool = pool
    this.#primary = primary
    this.reader = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: pool.forKysely }) })
    this.#timer = setInterval(() => void this.check(), CHECK_EVERY_MS).unref()
    void this.check()
  }

  get isUsable(): boolean {
    return performance.now() - this.#freshAt <= MOST_LAG_MS
  }

  /** It failed: the next check decides. */
  setAside(): void {
    this.#freshAt = Number.NEGATIVE_INFINITY
  }

  async check(): Promise<void> {
    if (this.#checking) return
    this.#checking = true
    try {
      const at = performance.now()
      this.#positions.push({ at, position: await positionOf(this.#primary, PRIMARY_POSITION) })
      if (this.#positions.length > KEPT_POSITIONS) this.#positions.shift()
      const own = await positionOf(this.#pool, REPLICA_POSITION)
      const reached = this.#positions.findLast(({ position }) => position <= own)
      this.#freshAt = reached?.at ?? Number.NEGATIVE_INFINITY
    } catch {
      // Without an answer it grows old.
    } finally {
      this.#checking = false
    }
  }

  /** Whether it has, within a second, all that is committed now. */
  async reachesNow(): Promise<boolean> {
    try {
      const wanted = await positionOf(this.#primary, PRIMARY_POSITION)
      const giveUpAt = performance.now() + CATCH_UP_MS
      for (;;) {
        if ((await positionOf(this.#pool, REPLICA_POSITION)) >= wanted) return true
        if (performance.now() > giveUpAt) return false
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    } catch {
      return false
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#pool.end()
  }
}

/** `16/B374D848`: two hexadecimal halves of a 64-bit number. */
async function positionOf(pool: BoundedPool, statement: string): Promise<bigint> {
  const { rows } = await pool.query(statement, [])
  const [high = '0', low = '0'] = String(rows[0]?.position).split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}
