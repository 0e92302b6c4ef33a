import Database from 'better-sqlite3'
import { z } from 'zod'
import type { Paisa } from '../../../shared/money.ts'
import { makePrivateFile } from '../../platform/private-files.ts'

const count = z.int().min(0).max(1_000_000).default(0)

/** What the sandbox does differently on request. A counter is the number of calls that it still affects. */
export const switchesSchema = z.strictObject({
  /** Time from an accepted call until its money moves and its event is due, ms. */
  event_delay_ms: z.int().min(0).max(86_400_000).default(0),
  /** The next accepted payouts end as `payout.failed`. */
  fail_next_payouts: count,
  failure_reason: z.string().min(1).max(500).default('the account does not accept transfers'),
  /** The call takes effect, but the connection breaks without an answer. */
  lose_next_answers: count,
  /** Each event is sent this many more times, with the same webhook-id. */
  duplicate_events: z.int().min(0).max(100).default(0),
  /** Money moves when it is due, but no event is sent until this time (epoch ms), even if the process that set it has ended. */
  hold_events_until: z.int().min(0).default(0),
})
export type SandboxSwitches = z.infer<typeof switchesSchema>

/** An invoice or payout with the call that made it and its event: paisa, epoch ms. */
export interface SandboxRecord {
  id: string
  kind: 'invoice' | 'payout'
  /** The idempotency key of the call. */
  key: string
  /** The call's body: the same key with another one is refused. */
  request: string
  reference: string
  amount: Paisa
  created_at: number
  /** From this time on the record has its outcome, and its event is sent. */
  due_at: number
  outcome: 'paid' | 'failed'
  /** The webhook-id of the event, the same on every attempt. */
  event_id: string
  body: string
  next_attempt_at: number
  attempts: number
  copies_sent: number
  delivered_at: number | null
}

/** How long a new process waits for a former one to end, ms. */
const TAKE_OVER_MS = 2000
const SWITCHES = 'switches'

/**
 * The state in memory, written through to the sandbox's file, or `:memory:`. Every write is on disk when it returns. Throws SQLITE_BUSY
 * while another process has the file open, because two sandboxes would both send its events. The lock ends with its process.
 */
export class SandboxStore {
  /** By idempotency key, oldest first. */
  readonly records = new Map<string, SandboxRecord>()
  switches: SandboxSwitches
  readonly #db: Database.Database
  readonly #write: Database.Statement

  constructor(databasePath: string) {
    if (databasePath !== ':memory:') makePrivateFile(databasePath)
    this.#db = new Database(databasePath, { timeout: TAKE_OVER_MS })
    this.#db.pragma('locking_mode = EXCLUSIVE')
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = FULL')
    this.#db.exec(
      'create table if not exists state (place integer primary key, key text not null unique, value text not null) strict',
    )
    this.#write = this.#db.prepare(
      'insert into state (key, value) values (?, ?) on conflict (key) do update set value = excluded.value',
    )
    let switches = {}
    const kept = this.#db.prepare<[], { key: string; value: string }>(
      'select key, value from state order by place',
    )
    for (const { key, value } of kept.all()) {
      if (key === SWITCHES) switches = JSON.parse(value)
      else this.records.set(key.slice(1), JSON.parse(value))
    }
    this.switches = switchesSchema.parse(switches)
  }

  put(record: SandboxRecord): void {
    this.#write.run(`=${record.key}`, JSON.stringify(record))
    this.records.set(record.key, record)
  }

  /** Throws `ZodError` for a value out of range. */
  change(change: Partial<SandboxSwitches>): SandboxSwitches {
    this.switches = switchesSchema.parse({ ...this.switches, ...change })
    this.#write.run(SWITCHES, JSON.stringify(this.switches))
    return this.switches
  }

  /** Uses up one of a counter; false when it is zero. */
  take(counter: 'fail_next_payouts' | 'lose_next_answers'): boolean {
    const left = this.switches[counter]
    if (left > 0) this.change({ [counter]: left - 1 })
    return left > 0
  }

  close(): void {
    this.#db.close()
  }
}
