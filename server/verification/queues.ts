import { sql } from 'kysely'
import { assertRow, DIGESTED_QUEUES, type DigestedQueue } from '../platform/crypto/digested-rows.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries } from '../platform/database/database.ts'
import { type Breach, type Invariant, inPages } from './invariant.ts'
import type { Scope } from './scope.ts'

const PAGE = 5000

/** Each queue with what its rows are called, and what a row of it must be. */
const QUEUES: Record<DigestedQueue, { name: string; subject: string; statement: string; key?: string }> = {
  inbound_events: {
    name: 'events-authentic',
    subject: 'event',
    statement: 'Each event is the one that intake verified and sealed.',
  },
  processor_attempts: {
    name: 'attempts-authentic',
    subject: 'attempt',
    statement: 'Each call to the processor is the one that this service committed.',
  },
  outbox_events: {
    name: 'outbox-authentic',
    subject: 'outbox event',
    statement: 'Each outbox event was written by this service.',
  },
  webhook_deliveries: {
    name: 'deliveries-authentic',
    subject: 'webhook delivery',
    statement: 'Each webhook delivery was queued by this service.',
  },
  mails: {
    name: 'mails-authentic',
    subject: 'mail',
    statement: 'Each mail was written by this service, to this address.',
  },
  schedule_runs: {
    name: 'runs-authentic',
    subject: 'run of',
    statement: 'Each scheduled run is the one that the scheduler noted.',
    key: 'name',
  },
  export_jobs: {
    name: 'exports-authentic',
    subject: 'export',
    statement: 'Each export is the one that its user started.',
  },
}

/** Many of these: an incremental verification checks the new ones. */
const LARGE: readonly DigestedQueue[] = ['inbound_events', 'outbox_events', 'webhook_deliveries']

/** What must hold of the rows that cause something: none was added or changed without APP_KEY. */
export const QUEUE_INVARIANTS: Invariant[] = (Object.keys(QUEUES) as DigestedQueue[]).map((table) => ({
  name: QUEUES[table].name,
  statement: QUEUES[table].statement,
  table,
  breaches: (db, keys, scope) => findForged(db, keys, table, scope),
}))

/** A key that is missing is reported once, with its first row. */
function findForged(db: Queries, keys: AppKeys, table: DigestedQueue, scope: Scope): Promise<Breach[]> {
  const missing = new Set<string>()
  const breachesOf = (row: QueueRow): Breach[] => {
    const name = `${QUEUES[table].subject} ${row.id}`
    try {
      assertRow(keys, table, row)
      return []
    } catch (error) {
      if (error instanceof IntegrityError) return [{ subject: name, detail: error.message }]
      if (!(error instanceof UnknownKeyError)) throw error
      if (missing.has(error.keyId)) return []
      missing.add(error.keyId)
      const detail = `rows of ${table}, the first of them ${name}, were sealed with this key, which is not in APP_KEY or APP_KEYS_FORMER: add it there to verify them; if no APP_KEY had this id, they are forged`
      return [{ subject: `key ${error.keyId}`, detail }]
    }
  }
  return inPages(
    (after: string | null) => readRows(db, table, after, scope),
    ({ id }) => id,
    (page) => page.flatMap(breachesOf),
  )
}

type QueueRow = Parameters<typeof assertRow>[2] & { id: string }

async function readRows(db: Queries, table: DigestedQueue, after: string | null, scope: Scope) {
  const columns = [...DIGESTED_QUEUES[table], 'row_digest']
    .filter((column) => column !== 'id')
    .map((column) => sql.ref(column))
  const { key = 'id' } = QUEUES[table]
  const { rows } = await sql<QueueRow>`
    select ${sql.ref(key)} as id, ${sql.join(columns)} from ${sql.table(table)}
    where ${after === null ? sql`true` : sql`${sql.ref(key)} > ${after}`} and ${LARGE.includes(table) ? scope.isNew('id') : sql`true`}
    order by ${sql.ref(key)} limit ${sql.lit(PAGE)}`.execute(db)
  return rows
}
