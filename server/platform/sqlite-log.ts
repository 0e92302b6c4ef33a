import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'

/**
 * How many pages of the log are worth folding in. Whoever commits while the thread syncs them waits for the disk to have taken them first: a quarter of
 * SQLite's own measure keeps that to a few milliseconds, at 800 pages it was up to twenty-five.
 */
const WORTH = 250
/**
 * The log begins anew only once all of it is folded in, which the thread never gets to while somebody writes without a pause. When it
 * has so many pages (128 MiB), the writer folds in the few that came meanwhile. That takes 3 to 25 ms in which nobody is answered: under
 * 8 KB webhooks once in two or three seconds, where with an eighth of the pages it was three times a second, and decided their p99.
 */
const RESTART_AT = 32_000
/** At this length a commit folds it in all the same: the thread does not keep up. */
const TOO_LONG = 64_000
/** SQLite's own measure. */
const WITHOUT_THREAD = 1000
/** A look takes as long as writing a row or two. */
const LOOK_EVERY_MS = 5
/** It only hands on a few numbers. */
const ROOM = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 1 }

/** In pages: how long the log is, and how much of it is folded in. */
export interface LogState {
  log: number
  checkpointed: number
}

/** What the thread is told: to fold in what there is, or to close the database and end. */
export type LogOrder = 'fold' | 'end'
/** What it says: that it has the database open, or how the log stood when it had folded; `null` when that could not be done. */
export type LogNews = 'open' | LogState | null

/**
 * Has the log of a database that is written to all the time folded in by a thread of its own. Without it the commit that finds the log
 * long enough does so, a dozen times a second, and everybody who has sent something waits those milliseconds longer.
 */
export class SqliteLog {
  readonly #file: string
  #writer: Database.Database | undefined
  #thread: Worker | undefined
  #state: 'none' | 'idle' | 'busy' | 'over' = 'none'
  #lookedAt = 0
  /** Its length when the thread was last sent: what a reader keeps from being folded in is not worth it again. */
  #given = 0

  constructor(file: string) {
    this.#file = file
  }

  /** Takes the handle that writes. */
  follow(writer: Database.Database): void {
    this.#writer = writer
  }

  /** To be told after each transaction. The thread begins with the first `hot` one that leaves something worth it. */
  written({ hot }: { hot: boolean }): void {
    if (this.#state !== 'idle' && !(hot && this.#state === 'none')) return
    const now = performance.now()
    if (now - this.#lookedAt < LOOK_EVERY_MS) return
    this.#lookedAt = now
    const { log, checkpointed } = this.#checkpoint('noop') ?? NOTHING
    if (log < this.#given) this.#given = 0
    if (log - Math.max(checkpointed, this.#given) < WORTH) return
    if (this.#state === 'none') {
      this.#begin()
      return
    }
    this.#given = log
    this.#state = 'busy'
    this.#order('fold')
  }

  /** Resolves when the thread has closed the database. To be called before the writer is closed: the last one folds in the rest. */
  async close(): Promise<void> {
    const thread = this.#thread
    this.#state = 'over'
    if (!thread) return
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    thread.ref()
    this.#order('end')
    await ended
  }

  #begin(): void {
    this.#state = 'busy'
    const thread = new Worker(threadFile(), { workerData: { file: this.#file }, resourceLimits: ROOM })
    thread.unref()
    thread.on('message', (news: LogNews) => this.#hear(news))
    // As before there was one: whatever keeps a thread from its work, the log is folded in by the commits.
    thread.on('error', () => this.#doWithout())
    thread.on('exit', () => this.#doWithout())
    this.#thread = thread
  }

  #hear(news: LogNews): void {
    if (this.#state === 'over') return
    this.#state = 'idle'
    if (news === 'open') this.#foldAtCommit(TOO_LONG)
    else if (news && news.log >= RESTART_AT && news.log - news.checkpointed < WORTH)
      this.#checkpoint('passive')
  }

  #doWithout(): void {
    this.#thread = undefined
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#foldAtCommit(WITHOUT_THREAD)
  }

  #order(order: LogOrder): void {
    this.#thread?.postMessage(order)
  }

  #foldAtCommit(pages: number): void {
    if (this.#writer?.open) told(this.#writer, `wal_autocheckpoint = ${pages}`)
  }

  /** In the middle of a transaction it cannot be done; whoever holds that open says so when it has ended. */
  #checkpoint(mode: 'noop' | 'passive'): LogState | null {
    return this.#writer?.open && !this.#writer.inTransaction ? checkpoint(this.#writer, mode) : null
  }
}

const NOTHING: LogState = { log: 0, checkpointed: 0 }

/** Folds in what nobody reads from the log any more, and waits for nobody; with `noop` it is only told how the log stands. */
export function checkpoint(database: Database.Database, mode: 'noop' | 'passive'): LogState | null {
  return told(database, `wal_checkpoint(${mode})`)
}

/** `null` when it cannot be done, as on a full disk: whoever has written to the log by then must not hear of a failure. */
function told(database: Database.Database, pragma: string): LogState | null {
  try {
    return database.prepare<[], LogState>(`pragma ${pragma}`).get() ?? null
  } catch {
    return null
  }
}

/** Beside this file, in the sources and in what is made of them. */
function threadFile(): URL {
  return new URL(import.meta.url.replace(/sqlite-log(\.[jt]s)$/, 'sqlite-log-thread$1'))
}
