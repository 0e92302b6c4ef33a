import Database from 'better-sqlite3'
import type { Paisa } from '../../../shared/money.ts'
import { makePrivateFile } from '../../platform/private-files.ts'
import { type SandboxSwitches, type SwitchCounter, switchesSchema, WELL_BEHAVED } from './switches.ts'

export type ObjectKind = 'invoice' | 'payout'
export type ObjectStatus = 'open' | 'processing' | 'paid' | 'failed'

/** An invoice or payout in the sandbox: paisa, epoch ms. */
export interface SandboxObject {
  id: string
  kind: ObjectKind
  reference: string
  amount: Paisa
  currency: string
  status: ObjectStatus
  created_at: number
}

export interface SandboxEvent {
  /** The webhook-id, the same on every attempt. */
  id: string
  seq: number
  object_id: string
  /** The object's status from the time when the event is due. */
  outcome: ObjectStatus
  body: string
  due_at: number
  next_attempt_at: number
  attempts: number
  copies_sent: number
  delivered_at: number | null
}

/** The answer to an idempotency key: an object, or a final refusal without one. */
export interface KeyedAnswer {
  request_hash: string
  object_id: string | null
}

export type NewEvent = Pick<SandboxEvent, 'id' | 'object_id' | 'outcome' | 'body' | 'due_at'>

const SCHEMA = `
  create table if not exists object (
    id text primary key, kind text not null, reference text not null, amount integer not null,
    currency text not null, status text not null, created_at integer not null
  ) strict;
  create index if not exists object_reference on object (kind, reference);
  create table if not exists keyed_answer (
    idempotency_key text primary key, request_hash text not null, object_id text references object (id)
  ) strict;
  create table if not exists event (
    seq integer primary key autoincrement, id text not null unique, object_id text not null references object (id),
    outcome text not null, body text not null, due_at integer not null, next_attempt_at integer not null,
    attempts integer not null default 0, copies_sent integer not null default 0, settled integer not null default 0,
    delivered_at integer
  ) strict;
  create index if not exists event_undelivered on event (next_attempt_at) where delivered_at is null;
  create table if not exists switches (id integer primary key check (id = 1), settings text not null) strict;
`
const EVENT_COLUMNS =
  'id, seq, object_id, outcome, body, due_at, next_attempt_at, attempts, copies_sent, delivered_at'

export type SandboxStore = ReturnType<typeof openSandboxStore>

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
  db.pragma('foreign_keys = ON')
  db.exec(SCHEMA)

  type Value = string | number | null
  const run = (text: string, ...values: Value[]) => db.prepare(text).run(...values)
  const one = <Row>(text: string, ...values: Value[]) => db.prepare<Value[], Row>(text).get(...values)
  const all = <Row>(text: string, ...values: Value[]) => db.prepare<Value[], Row>(text).all(...values)

  const switches = (): SandboxSwitches => {
    const row = one<{ settings: string }>('select settings from switches where id = 1')
    return switchesSchema.parse(row ? JSON.parse(row.settings) : WELL_BEHAVED)
  }
  const writeSwitches = (changed: SandboxSwitches) =>
    run('insert or replace into switches (id, settings) values (1, ?)', JSON.stringify(changed))

  return {
    switches,
    changeSwitches: db.transaction((change: Partial<SandboxSwitches>): SandboxSwitches => {
      const changed = { ...switches(), ...change }
      writeSwitches(changed)
      return changed
    }),
    /** Uses up one of a counter; false when it is zero. */
    take: db.transaction((counter: SwitchCounter): boolean => {
      const current = switches()
      if (current[counter] === 0) return false
      writeSwitches({ ...current, [counter]: current[counter] - 1 })
      return true
    }),
    /** Runs the reads and writes of `work` in one transaction. */
    atomically: <Result>(work: () => Result): Result => db.transaction(work).immediate(),
    answerOf: (key: string) =>
      one<KeyedAnswer>('select request_hash, object_id from keyed_answer where idempotency_key = ?', key),
    keepAnswer: (key: string, requestHash: string, objectId: string | null) =>
      run('insert into keyed_answer values (?, ?, ?)', key, requestHash, objectId),
    objectById: (id: string) => one<SandboxObject>('select * from object where id = ?', id),
    objectsByReference: (kind: ObjectKind, reference: string) =>
      all<SandboxObject>(
        'select * from object where kind = ? and reference = ? order by rowid',
        kind,
        reference,
      ),
    objects: (kind: ObjectKind) =>
      all<SandboxObject>('select * from object where kind = ? order by rowid', kind),
    insertObject: ({ id, kind, reference, amount, currency, status, created_at }: SandboxObject) =>
      run(
        'insert into object values (?, ?, ?, ?, ?, ?, ?)',
        ...[id, kind, reference, amount, currency, status, created_at],
      ),
    insertEvent: ({ id, object_id, outcome, body, due_at }: NewEvent) =>
      run(
        'insert into event (id, object_id, outcome, body, due_at, next_attempt_at) values (?, ?, ?, ?, ?, ?)',
        ...[id, object_id, outcome, body, due_at, due_at],
      ),
    /** Moves the money of every due event: its object gets its final status. */
    settle: db.transaction((now: number): void => {
      run(
        `update object set status = e.outcome from event e
         where e.object_id = object.id and e.settled = 0 and e.due_at <= ?`,
        now,
      )
      run('update event set settled = 1 where settled = 0 and due_at <= ?', now)
    }),
    sendable: (now: number) =>
      all<SandboxEvent>(
        `select ${EVENT_COLUMNS} from event where delivered_at is null and next_attempt_at <= ? order by seq`,
        now,
      ),
    undelivered: (dueBy: number): number =>
      one<{ count: number }>(
        'select count(*) as count from event where delivered_at is null and due_at <= ?',
        dueBy,
      )?.count ?? 0,
    /** When there is something to do next, or null. With held events only settlements count. */
    nextMoment: (held: boolean): number | null => {
      const settlement = 'select min(due_at) as at from event where settled = 0'
      const delivery = `select next_attempt_at as at from event where delivered_at is null`
      const text = held ? settlement : `select min(at) as at from (${delivery} union all ${settlement})`
      return one<{ at: number | null }>(text)?.at ?? null
    },
    events: () => all<SandboxEvent>(`select ${EVENT_COLUMNS} from event order by seq`),
    eventById: (id: string) => one<SandboxEvent>(`select ${EVENT_COLUMNS} from event where id = ?`, id),
    recordArrival: db.transaction((id: string, duplicates: number, now: number): void => {
      run('update event set attempts = attempts + 1, copies_sent = copies_sent + 1 where id = ?', id)
      run(
        'update event set delivered_at = ? where id = ? and copies_sent > ? and delivered_at is null',
        ...[now, id, duplicates],
      )
    }),
    recordFailure: (id: string, retryAt: number) =>
      run('update event set attempts = attempts + 1, next_attempt_at = ? where id = ?', retryAt, id),
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
