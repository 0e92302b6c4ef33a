import Database from 'better-sqlite3'
import type { Paisa } from '../../../shared/money.ts'
import { makePrivateFile } from '../../platform/private-files.ts'
import { type SandboxSwitches, type SwitchCounter, switchesSchema, WELL_BEHAVED } from './switches.ts'

export type ObjectKind = 'invoice' | 'payout'
export type ObjectStatus = 'open' | 'processing' | 'paid' | 'failed'

/** An invoice or payout as the sandbox holds it: paisa, epoch milliseconds. */
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
  /** What becomes of the object when the event is due. */
  outcome: ObjectStatus
  body: string
  due_at: number
  next_attempt_at: number
  attempts: number
  copies_sent: number
  delivered_at: number | null
}

/** What an idempotency key was answered: with an object, or with a final refusal (no object). */
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

/** How long another process may take to end when this one takes over from it. */
const TAKE_OVER_MS = 2000

/**
 * Opens (and makes, when needed) the sandbox's own file, or `:memory:`. Every write is on disk when it returns. Throws
 * SQLITE_BUSY while another process has it open: two sandboxes would both send its events. The lock goes with the process
 * that holds it, however that ends.
 */
export function openSandboxStore(databasePath: string) {
  if (databasePath !== ':memory:') makePrivateFile(databasePath)
  const db = new Database(databasePath, { timeout: TAKE_OVER_MS })
  db.pragma('locking_mode = EXCLUSIVE')
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')
  db.exec(SCHEMA)

  const readSwitches = db.prepare<[], { settings: string }>('select settings from switches where id = 1')
  const writeSwitches = db.prepare('insert or replace into switches (id, settings) values (1, ?)')
  const answerOf = db.prepare<[string], KeyedAnswer>(
    'select request_hash, object_id from keyed_answer where idempotency_key = ?',
  )
  const keepAnswer = db.prepare('insert into keyed_answer values (?, ?, ?)')
  const objectById = db.prepare<[string], SandboxObject>('select * from object where id = ?')
  const objectsByReference = db.prepare<[ObjectKind, string], SandboxObject>(
    'select * from object where kind = ? and reference = ? order by rowid',
  )
  const allObjects = db.prepare<[ObjectKind], SandboxObject>(
    'select * from object where kind = ? order by rowid',
  )
  const insertObject = db.prepare(
    'insert into object values (@id, @kind, @reference, @amount, @currency, @status, @created_at)',
  )
  const insertEvent = db.prepare(
    'insert into event (id, object_id, outcome, body, due_at, next_attempt_at) values (?, ?, ?, ?, ?, ?)',
  )
  const settleObjects = db.prepare(
    `update object set status = e.outcome from event e
     where e.object_id = object.id and e.settled = 0 and e.due_at <= ?`,
  )
  const markSettled = db.prepare('update event set settled = 1 where settled = 0 and due_at <= ?')
  const sendable = db.prepare<[number], SandboxEvent>(
    `select ${EVENT_COLUMNS} from event where delivered_at is null and next_attempt_at <= ? order by seq`,
  )
  const undelivered = db.prepare<[number], { count: number }>(
    'select count(*) as count from event where delivered_at is null and due_at <= ?',
  )
  const nextMoment = db.prepare<[], { at: number | null }>(
    `select min(at) as at from (
       select next_attempt_at as at from event where delivered_at is null
       union all select due_at from event where settled = 0)`,
  )
  const nextSettlement = db.prepare<[], { at: number | null }>(
    'select min(due_at) as at from event where settled = 0',
  )
  const allEvents = db.prepare<[], SandboxEvent>(`select ${EVENT_COLUMNS} from event order by seq`)
  const eventById = db.prepare<[string], SandboxEvent>(`select ${EVENT_COLUMNS} from event where id = ?`)
  const copyArrived = db.prepare(
    'update event set attempts = attempts + 1, copies_sent = copies_sent + 1 where id = ?',
  )
  const attemptFailed = db.prepare(
    'update event set attempts = attempts + 1, next_attempt_at = ? where id = ?',
  )
  const markDelivered = db.prepare(
    'update event set delivered_at = ? where id = ? and copies_sent > ? and delivered_at is null',
  )

  // Settings kept by an older version lack newer switches; those start as well behaved.
  const switches = (): SandboxSwitches => {
    const row = readSwitches.get()
    return switchesSchema.parse(row ? { ...WELL_BEHAVED, ...JSON.parse(row.settings) } : WELL_BEHAVED)
  }

  return {
    switches,
    changeSwitches: db.transaction((change: Partial<SandboxSwitches>): SandboxSwitches => {
      const changed = { ...switches(), ...change }
      writeSwitches.run(JSON.stringify(changed))
      return changed
    }),
    /** Uses up one of a counter; false when it stands at zero. */
    take: db.transaction((counter: SwitchCounter): boolean => {
      const current = switches()
      if (current[counter] === 0) return false
      writeSwitches.run(JSON.stringify({ ...current, [counter]: current[counter] - 1 }))
      return true
    }),
    /** Runs the reads and writes of `work` in one transaction. */
    atomically: <Result>(work: () => Result): Result => db.transaction(work).immediate(),
    answerOf: (key: string) => answerOf.get(key),
    keepAnswer: (key: string, requestHash: string, objectId: string | null) => {
      keepAnswer.run(key, requestHash, objectId)
    },
    objectById: (id: string) => objectById.get(id),
    objectsByReference: (kind: ObjectKind, reference: string) => objectsByReference.all(kind, reference),
    objects: (kind: ObjectKind) => allObjects.all(kind),
    insertObject: (object: SandboxObject) => {
      insertObject.run(object)
    },
    insertEvent: (event: NewEvent) => {
      const { id, object_id, outcome, body, due_at } = event
      insertEvent.run(id, object_id, outcome, body, due_at, due_at)
    },
    /** Moves the money of every event that is due: its object takes its final status. */
    settle: db.transaction((now: number): void => {
      settleObjects.run(now)
      markSettled.run(now)
    }),
    sendable: (now: number) => sendable.all(now),
    undelivered: (dueBy: number) => undelivered.get(dueBy)?.count ?? 0,
    /** When there is next something to do, or null. With held events only settlements count. */
    nextMoment: (held: boolean) => (held ? nextSettlement : nextMoment).get()?.at ?? null,
    events: () => allEvents.all(),
    eventById: (id: string) => eventById.get(id),
    recordArrival: db.transaction((id: string, duplicates: number, now: number): void => {
      copyArrived.run(id)
      markDelivered.run(now, id, duplicates)
    }),
    recordFailure: (id: string, retryAt: number) => {
      attemptFailed.run(retryAt, id)
    },
    /** What the file really runs with; `synchronous` 2 is FULL. */
    durability: () => ({
      journal_mode: db.pragma('journal_mode', { simple: true }),
      synchronous: db.pragma('synchronous', { simple: true }),
    }),
    close: () => {
      db.close()
    },
  }
}
