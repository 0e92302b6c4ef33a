import Database from 'better-sqlite3'
import { formatMoney, type Paisa } from '../../../shared/money.ts'
import { isoTime } from '../../platform/clock.ts'
import { makePrivateFile } from '../../platform/private-files.ts'
import { type SandboxSwitches, type SwitchCounter, switchesSchema, WELL_BEHAVED } from './switches.ts'

export type ObjectKind = 'invoice' | 'payout'

/** An invoice or payout in the sandbox: paisa, epoch ms. */
export interface SandboxObject {
  id: string
  kind: ObjectKind
  reference: string
  amount: Paisa
  currency: string
  status: 'open' | 'processing' | 'paid' | 'failed'
  created_at: number
}

export interface SandboxEvent {
  /** The webhook-id, the same on every attempt. */
  id: string
  object_id: string
  /** The object's status from the time when the event is due. */
  outcome: SandboxObject['status']
  body: string
  due_at: number
  settled: boolean
  next_attempt_at: number
  attempts: number
  copies_sent: number
  delivered_at: number | null
}

/** The answer to an idempotency key: an object, or a final refusal without one. */
interface KeyedAnswer {
  request_hash: string
  object_id: string | null
}

const SCHEMA = `
  create table if not exists entry (
    place integer primary key, list text not null, id text not null, value text not null, unique (list, id)
  ) strict`

export type SandboxStore = ReturnType<typeof openSandboxStore>
export type SandboxState = ReturnType<SandboxStore['state']>

/** How long a new process waits for a former one to end, ms. */
const TAKE_OVER_MS = 2000

/**
 * Opens the sandbox's file, or `:memory:`, and creates it if necessary. Every write is on disk when it returns. Throws SQLITE_BUSY while
 * another process has the file open, because two sandboxes would both send its events. The lock ends with its process.
 */
export function openSandboxStore(databasePath: string) {
  if (databasePath !== ':memory:') makePrivateFile(databasePath)
  const db = new Database(databasePath, { timeout: TAKE_OVER_MS })
  db.pragma('locking_mode = EXCLUSIVE')
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec(SCHEMA)
  const objects = openList<SandboxObject>(db, 'objects')
  const events = openList<SandboxEvent>(db, 'events')
  const saved = openList<SandboxSwitches>(db, 'switches')
  const switches = () => switchesSchema.parse(saved.get('all') ?? WELL_BEHAVED)

  /** Moves the money of every due event: its object gets its final status. */
  const settle = db.transaction((now: number): void => {
    for (const event of events.values()) {
      if (event.settled || event.due_at > now) continue
      const object = objects.get(event.object_id)
      if (object) objects.put({ ...object, status: event.outcome })
      events.put({ ...event, settled: true })
    }
  })

  return {
    objects,
    events,
    answers: openList<KeyedAnswer>(db, 'answers'),
    settle,
    switches,
    changeSwitches(change: Partial<SandboxSwitches>): SandboxSwitches {
      const changed = { ...switches(), ...change }
      saved.put(changed, 'all')
      return changed
    },
    /** Uses up one of a counter; false when it is zero. */
    take(counter: SwitchCounter): boolean {
      const left = switches()[counter]
      if (left > 0) this.changeSwitches({ [counter]: left - 1 })
      return left > 0
    },
    /** Runs the writes of `work` in one transaction. */
    atomically: <Result>(work: () => Result): Result => db.transaction(work)(),
    /** Everything in the sandbox, oldest first: the answer of GET /_sandbox/state. Events that are due are settled first. */
    state(now: number) {
      settle(now)
      const shown = (kind: ObjectKind) =>
        [...objects.values()]
          .filter((object) => object.kind === kind)
          .map(({ kind: _, ...object }) => ({
            ...object,
            amount: formatMoney(object.amount),
            created_at: isoTime(object.created_at),
          }))
      const shownEvents = [...events.values()].map((event) => ({
        id: event.id,
        object_id: event.object_id,
        body: JSON.parse(event.body) as unknown,
        due_at: isoTime(event.due_at),
        attempts: event.attempts,
        copies_sent: event.copies_sent,
        delivered_at: event.delivered_at === null ? null : isoTime(event.delivered_at),
      }))
      return {
        invoices: shown('invoice'),
        payouts: shown('payout'),
        events: shownEvents,
        switches: switches(),
      }
    },
    /** The pragmas of the open file; `synchronous` 2 is FULL. */
    durability: () => ({
      journal_mode: db.pragma('journal_mode', { simple: true }),
      synchronous: db.pragma('synchronous', { simple: true }),
    }),
    close: () => {
      db.close()
    },
  }
}

/** A list in memory whose changes are written through to the file. */
function openList<Row extends object>(db: Database.Database, list: string) {
  const kept = db.prepare<[string], { id: string; value: string }>(
    'select id, value from entry where list = ? order by place',
  )
  const rows = new Map(kept.all(list).map(({ id, value }) => [id, JSON.parse(value) as Row]))
  const write = db.prepare(
    `insert into entry (list, id, value) values (?, ?, ?) on conflict (list, id) do update set value = excluded.value`,
  )
  return {
    get: (id: string) => rows.get(id),
    /** Oldest first. */
    values: () => rows.values(),
    put(row: Row, id = (row as { id?: string }).id ?? ''): void {
      write.run(list, id, JSON.stringify(row))
      rows.set(id, row)
    },
  }
}
