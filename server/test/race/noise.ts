import { setTimeout as pause } from 'node:timers/promises'
import { CompiledQuery, type KyselyPlugin } from 'kysely'
import type { Database } from '../../platform/database/database.ts'
import { DatabaseBusy } from '../../platform/database/database-faults.ts'

/** Milliseconds of a monotonic clock that all processes of this machine share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

const LONGEST_PAUSE_MS = 2

/** Pauses by the dice after a statement, so that two sides meet at other statements in each contest. */
const pausing = (roll: () => number): KyselyPlugin => ({
  transformQuery: ({ node }) => node,
  async transformResult({ result }) {
    if (roll() < 0.5) await pause(roll() * LONGEST_PAUSE_MS)
    return result
  },
})

/** Some five milliseconds. */
const LONGEST_BUSY_STEPS = 50_000

/** What keeps SQLite busy inside a transaction that has no pauses between its statements, so that two of them meet. */
function busyFor(steps: number): CompiledQuery {
  return CompiledQuery.raw(
    'with recursive step (n) as (select 1 union all select n + 1 from step where n < ?) select count(*) from step',
    [Math.ceil(steps)],
  )
}

/** What a side did in the database. */
export interface Trace {
  /** From asking for a transaction to its end, on the shared clock. */
  spans: [number, number][]
  /** Transactions that ran again after a conflict. */
  repeats: number
}

const MOST_REPEATS = 100

/** Asks again for a transaction that could not begin, as a client that is answered 503 does. On a busy machine the other side holds the lock longer. */
async function patiently<T>(begin: () => Promise<T>): Promise<T> {
  for (let left = MOST_REPEATS; ; left -= 1) {
    try {
      return await begin()
    } catch (error) {
      if (left === 0 || !(error instanceof DatabaseBusy)) throw error
    }
  }
}

/** The same database with pauses between its statements, which notes when transactions were under way. */
export function noisyDatabase(database: Database, roll: () => number, trace: Trace): Database {
  const pauses = pausing(roll)
  return {
    dialect: database.dialect,
    reader: database.reader.withPlugin(pauses),
    async transaction(work) {
      const begun = sharedNow()
      let runs = 0
      try {
        return await patiently(() =>
          database.transaction((tx) => {
            runs += 1
            return work(tx.withPlugin(pauses))
          }),
        )
      } finally {
        trace.spans.push([begun, sharedNow()])
        trace.repeats += Math.max(0, runs - 1)
      }
    },
    async executeBatch(...statements) {
      const begun = sharedNow()
      try {
        // PostgreSQL takes one statement only, and its trip takes long enough.
        const busy = database.dialect === 'sqlite' ? [busyFor(roll() * LONGEST_BUSY_STEPS)] : []
        return await patiently(() => database.executeBatch(...busy, ...statements))
      } finally {
        trace.spans.push([begun, sharedNow()])
      }
    },
    faultOf: (error) => database.faultOf(error),
    close: () => database.close(),
  }
}
