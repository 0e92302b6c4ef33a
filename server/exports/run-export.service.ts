import { randomInt, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ABOVE_ALL_IDS, idAfter, type KeysetScan, type ScanPage } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'
import { csvHeader, csvRecords, exportColumns } from './export-columns.rule.ts'
import { exportSource } from './export-source.service.ts'
import type { ExportStorage } from './export-storage.ts'
import {
  deleteFinished,
  EXPORT_QUEUE,
  type ExportJobRow,
  expiredFiles,
  forgetFile,
  MAX_DELAY_MS,
} from './exports.store.ts'

const DAY_MS = 86_400_000
/** How long a file is kept. */
export const FILE_LIFETIME_MS = 7 * DAY_MS
/** How long a finished job can be looked at. */
export const JOB_LIFETIME_MS = 30 * DAY_MS
/** A worker that has not renewed its lease for so long has gone. */
export const EXPORT_LEASE_MS = 60_000
export const MAX_ATTEMPTS = 5
const RETRY: BackoffPolicy = { firstMs: 2000, factor: 4, maxMs: MAX_DELAY_MS }

/** Few enough rows that reading them holds up nobody on SQLite, where a query stops the process. */
const ROWS_AT_ONCE = 500
const COUNTED_AT_ONCE = 5000
const RENEW_EVERY_MS = 1000
/** Where time stands still, or rows come very fast. */
const RENEW_EVERY_STEPS = 50
const EXPIRED_AT_ONCE = 100

const GAVE_UP = 'The export could not be finished. Start it again; if that does not help, tell the operator.'

class LeaseLost extends Error {}

/**
 * Takes up the next export that is due and writes its file, from the newest row to the oldest. Answers whether there was one.
 * What an earlier attempt left behind goes; an error is tried again later; an aborted `stop` puts the job back at once.
 */
export async function runNextExport(
  platform: Platform,
  storage: ExportStorage,
  stop: AbortSignal,
): Promise<boolean> {
  const job = await claim(platform)
  if (!job) return false
  const run = new ExportRun(platform, job, stop)
  const key = keyOf(job, job.attempts)
  try {
    for (let attempt = 1; attempt < job.attempts; attempt += 1) await storage.remove(keyOf(job, attempt))
    if (job.attempts > MAX_ATTEMPTS) throw new Error('every attempt has ended without a result')
    await storage.write(key, run.content())
    if (!(await run.finish(key))) await storage.remove(key)
  } catch (error) {
    if (!(error instanceof LeaseLost)) await run.release(error)
  }
  return true
}

async function claim(platform: Platform): Promise<ExportJobRow | undefined> {
  const now = platform.clock.now()
  const lease = { token: randomUUID(), until: now + EXPORT_LEASE_MS }
  const set = { state: 'running', rows_total: null, rows_done: 0 } as const
  const [job] = await EXPORT_QUEUE.claim(platform.database, { now, limit: 1, lease, set })
  return job && { ...job, lease_token: lease.token, attempts: job.attempts + 1 }
}

/** A name for each attempt: one that was given up for lost and still runs must not write into its successor's file. */
function keyOf(job: ExportJobRow, attempt: number): string {
  return `${job.id}-${attempt}.${job.format}`
}

/** One attempt at a job, from its claim on. */
class ExportRun {
  readonly #platform: Platform
  readonly #job: ExportJobRow
  readonly #stop: AbortSignal
  readonly #source: KeysetScan<object>
  #rows = 0
  #stepsSinceRenewal = 0
  #renewedAt: number

  constructor(platform: Platform, job: ExportJobRow, stop: AbortSignal) {
    this.#platform = platform
    this.#job = job
    this.#stop = stop
    this.#renewedAt = platform.clock.now()
    this.#source = exportSource(platform, { userId: job.user_id, role: job.role }, job.resource)
  }

  /** The file, piece by piece. What is there when it begins is in it; what comes later is not. */
  async *content(): AsyncGenerator<string> {
    const { total, upTo } = await this.#count()
    await this.#renew({ rows_total: total })
    const columns = exportColumns(this.#job.resource, this.#job.role)
    const csv = this.#job.format === 'csv'
    if (csv) yield csvHeader(columns)
    if (upTo === null) return
    const lineOf = csv ? csvRecords(columns) : (item: object) => `${JSON.stringify(item)}\n`
    for (let below: string | null = idAfter(upTo); below !== null; ) {
      const { items, last } = await this.#source.read(this.#step(below, ROWS_AT_ONCE))
      if (items.length > 0) yield items.map(lineOf).join('')
      this.#rows += items.length
      await this.#afterStep()
      below = last
    }
  }

  async #count(): Promise<{ total: number; upTo: string | null }> {
    let total = 0
    let upTo: string | null = null
    for (let below: string | null = ABOVE_ALL_IDS; below !== null; ) {
      const step = await this.#source.count(this.#step(below, COUNTED_AT_ONCE))
      total += step.rows
      upTo ??= step.first
      below = step.last
      await this.#afterStep()
    }
    return { total, upTo }
  }

  #step(below: string, size: number): ScanPage {
    return { below, size, from: this.#job.from_at, to: this.#job.to_at }
  }

  /** Lets others have their turn, and tells now and then how far it is. */
  async #afterStep(): Promise<void> {
    await nextTurn()
    this.#stop.throwIfAborted()
    this.#stepsSinceRenewal += 1
    const age = this.#platform.clock.now() - this.#renewedAt
    if (age >= RENEW_EVERY_MS || this.#stepsSinceRenewal >= RENEW_EVERY_STEPS) await this.#renew({})
  }

  async #renew(change: Partial<ExportJobRow>): Promise<void> {
    const now = this.#platform.clock.now()
    const progress = { ...change, rows_done: this.#rows }
    const isHeld = await this.#platform.database.transaction((tx) =>
      EXPORT_QUEUE.renew(tx, this.#held, now + EXPORT_LEASE_MS, progress),
    )
    if (!isHeld) throw new LeaseLost()
    this.#renewedAt = now
    this.#stepsSinceRenewal = 0
  }

  /** Returns false when another worker holds the job. */
  finish(key: string): Promise<boolean> {
    const now = this.#platform.clock.now()
    return this.#complete({
      state: 'succeeded',
      rows_done: this.#rows,
      file_key: key,
      finished_at: now,
      expires_at: now + FILE_LIFETIME_MS,
    })
  }

  /** Ends an attempt that failed or was stopped. */
  async release(error: unknown): Promise<void> {
    const { attempts, id } = this.#job
    const now = this.#platform.clock.now()
    const { log } = this.#platform
    if (this.#stop.aborted) {
      await this.#defer(now, { attempts: attempts - 1 })
    } else if (attempts < MAX_ATTEMPTS) {
      log.warn({ err: error, job: id, attempts }, 'an export failed; it is tried again')
      await this.#defer(now + retryDelay(attempts, RETRY, randomInt(1_000_000) / 1_000_000))
    } else {
      log.error({ err: error, job: id }, 'an export has failed')
      await this.#complete({ state: 'failed', finished_at: now, error: GAVE_UP })
    }
  }

  get #held() {
    return { id: this.#job.id, token: this.#job.lease_token ?? '' }
  }

  #complete(result: Partial<ExportJobRow>): Promise<boolean> {
    return this.#platform.database.transaction((tx) => EXPORT_QUEUE.complete(tx, this.#held, result))
  }

  #defer(dueAt: number, change: Partial<ExportJobRow> = {}): Promise<boolean> {
    return this.#platform.database.transaction((tx) => EXPORT_QUEUE.defer(tx, this.#held, dueAt, change))
  }
}

/** When the next export may be taken up (epoch ms); `null` when none waits. */
export function nextExportDueAt(platform: Platform): Promise<number | null> {
  return EXPORT_QUEUE.nextDueAt(platform.database.reader)
}

/** Removes files whose time is over, and jobs long done. Answers how many files went. */
export async function sweepExports(platform: Platform, storage: ExportStorage): Promise<number> {
  const now = platform.clock.now()
  const expired = await expiredFiles(platform.database.reader, now, EXPIRED_AT_ONCE)
  for (const { id, file_key } of expired) {
    if (file_key !== null) await storage.remove(file_key)
    await platform.database.transaction((tx) => forgetFile(tx, id))
  }
  await platform.database.transaction((tx) => deleteFinished(tx, now - JOB_LIFETIME_MS))
  return expired.length
}
