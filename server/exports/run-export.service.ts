import { randomInt, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MS } from '../../shared/durations.ts'
import { scanApplications } from '../applications/applications.service.ts'
import { scanCycles } from '../billing/billing.service.ts'
import { scanClicks } from '../clicks/clicks.service.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { scanPayouts } from '../payouts/payouts.service.ts'
import { scanPendingOrders } from '../pending-orders/pending-orders.service.ts'
import { ABOVE_ALL_IDS, idAfter, type KeysetScan, ownScope } from '../platform/database/keyset-scan.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'
import type { Held } from '../platform/queue/lease-queue.ts'
import { currentReads } from '../platform/replica-reads.ts'
import type { FileStorage } from '../platform/storage/storage.ts'
import { scanSales } from '../sales/sales.service.ts'
import { BYTE_ORDER_MARK, csvHeader, csvRecords } from './csv.rule.ts'
import { exportColumns } from './export-columns.rule.ts'
import {
  deleteFinished,
  EXPORT_QUEUE,
  type ExportJobRow,
  expiredFiles,
  forgetFile,
  MAX_DELAY_MS,
} from './exports.store.ts'

/** How long a file is kept. */
const FILE_LIFETIME_MS = 7 * DAY_MS
/** How long a finished job is kept. */
const JOB_LIFETIME_MS = 30 * DAY_MS
/** A worker that has not renewed its lease for this long has died. */
export const EXPORT_LEASE_MS = 60_000
export const MAX_ATTEMPTS = 5
const RETRY: BackoffPolicy = { firstMs: 2000, factor: 4, maxMs: MAX_DELAY_MS }

/** Rows in one query: few, because on SQLite a query blocks the process. */
const PAGE = 500
const COUNTED_PAGE = 5000
const RENEW_EVERY_MS = 1000
const SWEPT_FILES = 100

const GAVE_UP =
  'The export could not be finished. Start it again; if it fails again, contact the operator of this service.'

class LeaseLost extends Error {}

/**
 * Claims the next due export and writes its file, from the newest row to the oldest. Returns whether there was one. Removes the files of
 * earlier attempts. An error is retried later; an aborted `stop` makes the job due for the next worker.
 */
export async function runNextExport(
  platform: Platform,
  storage: FileStorage,
  stop: AbortSignal,
): Promise<boolean> {
  const job = await claim(platform)
  if (!job) return false
  const problem = rowProblem(platform.keys, 'export_jobs', job)
  if (problem !== null) return refuseForged(platform, job, problem)
  // It shows what its starter wrote before, and each page is of the same database.
  const run = new ExportRun(platform, job, stop, await currentReads(platform))
  const key = keyOf(job, job.attempts)
  try {
    for (let attempt = 1; attempt < job.attempts; attempt += 1) await storage.remove(keyOf(job, attempt))
    if (job.attempts > MAX_ATTEMPTS) throw new Error('every attempt ended without a result')
    await storage.write(key, run.content())
    if (!(await run.finish(key))) await storage.remove(key)
  } catch (error) {
    if (!(error instanceof LeaseLost)) await run.release(error)
  }
  return true
}

type ClaimedJob = ExportJobRow & Held

/** Fails a job that no user started. Nothing is written. */
async function refuseForged(platform: Platform, job: ClaimedJob, problem: string): Promise<true> {
  await platform.database.transaction(async (tx) => {
    await EXPORT_QUEUE.complete(tx, job, {
      state: 'failed',
      error: GAVE_UP,
      finished_at: platform.clock.now(),
    })
    await flagForgedRows(platform, tx, 'export_jobs', [{ id: job.id, problem }])
  })
  return true
}

async function claim(platform: Platform): Promise<ClaimedJob | undefined> {
  const now = platform.clock.now()
  const token = randomUUID()
  const [job] = await EXPORT_QUEUE.claim(platform.database, {
    now,
    limit: 1,
    lease: { token, until: now + EXPORT_LEASE_MS },
    set: { state: 'running', rows_total: null, rows_done: 0 },
  })
  return job && { ...job, token, attempts: job.attempts + 1 }
}

/** Each attempt has its own file, so that a stale holder that still runs does not write into that of its successor. */
function keyOf(job: ExportJobRow, attempt: number): string {
  return `${job.id}-${attempt}.${job.format}`
}

/** What a file shows. */
type ExportContent = Pick<
  ExportJobRow,
  'user_id' | 'role' | 'resource' | 'format' | 'excel' | 'billing_cycle_id' | 'from_at' | 'to_at'
>

/** The rows of a resource that this user may see, as wire objects. */
function rowsOf(
  platform: Platform,
  { user_id, role, resource, billing_cycle_id }: ExportContent,
): KeysetScan<object> {
  const scope = role === 'admin' ? 'all' : ownScope({ userId: user_id, role })
  switch (resource) {
    case 'sales':
      return scanSales(platform, scope, billing_cycle_id)
    case 'payouts':
      return scanPayouts(platform, scope)
    case 'clicks':
      return scanClicks(platform, scope)
    case 'applications':
      return scanApplications(platform, scope)
    case 'pending_orders':
      return scanPendingOrders(platform, scope)
    case 'billing_cycles':
      if (role === 'creator') throw new Error('a creator has no billing cycles')
      return scanCycles(platform, role === 'admin' ? null : user_id)
  }
}

/** The parts of a file with these rows below an id, newest first. Calls `afterPage` with the number of rows read. */
async function* partsOf(
  { resource, role, format, excel, from_at, to_at }: ExportContent,
  rows: KeysetScan<object>,
  from: string | null,
  afterPage: (rows: number) => Promise<void>,
): AsyncGenerator<string> {
  const columns = exportColumns(resource, role)
  const csv = format === 'csv'
  const style = { excel: excel === 1 }
  if (csv) yield (style.excel ? BYTE_ORDER_MARK : '') + csvHeader(columns)
  const lineOf = csv ? csvRecords(columns, style) : (item: object) => `${JSON.stringify(item)}\n`
  for (let below = from; below !== null; ) {
    const { items, last } = await rows.read({ below, size: PAGE, from: from_at, to: to_at })
    if (items.length > 0) yield items.map(lineOf).join('')
    await afterPage(items.length)
    below = last
  }
}

/** The parts of a file for the operator, who may see every user's rows. Calls `onRows` with the number of rows so far. */
export async function* exportParts(
  platform: Platform,
  content: ExportContent,
  onRows: (rows: number) => void,
): AsyncGenerator<string> {
  const rows = rowsOf(await currentReads(platform), content)
  let done = 0
  yield* partsOf(content, rows, ABOVE_ALL_IDS, async (read) => {
    done += read
    onRows(done)
    await nextTurn()
  })
}

/** One attempt at a job, from its claim on. */
class ExportRun {
  readonly #platform: Platform
  readonly #job: ClaimedJob
  readonly #stop: AbortSignal
  readonly #rows: KeysetScan<object>
  #done = 0
  #renewedAt: number

  constructor(platform: Platform, job: ClaimedJob, stop: AbortSignal, source: Platform) {
    this.#platform = platform
    this.#job = job
    this.#stop = stop
    this.#renewedAt = platform.clock.now()
    this.#rows = rowsOf(source, job)
  }

  /** The file in parts. It has the rows that exist when it starts, and none that are added later. */
  async *content(): AsyncGenerator<string> {
    const { total, upTo } = await this.#count()
    await this.#renew({ rows_total: total })
    yield* partsOf(this.#job, this.#rows, upTo && idAfter(upTo), async (rows) => {
      this.#done += rows
      await this.#afterPage()
    })
  }

  async #count(): Promise<{ total: number; upTo: string | null }> {
    let total = 0
    let upTo: string | null = null
    for (let below: string | null = ABOVE_ALL_IDS; below !== null; ) {
      const { from_at: from, to_at: to } = this.#job
      const page = await this.#rows.count({ below, size: COUNTED_PAGE, from, to })
      total += page.rows
      upTo ??= page.first
      below = page.last
      await this.#afterPage()
    }
    return { total, upTo }
  }

  /** Lets other work run, and renews the lease with the progress now and then. */
  async #afterPage(): Promise<void> {
    await nextTurn()
    this.#stop.throwIfAborted()
    if (this.#platform.clock.now() - this.#renewedAt >= RENEW_EVERY_MS) await this.#renew({})
  }

  async #renew(change: Partial<ExportJobRow>): Promise<void> {
    const now = this.#platform.clock.now()
    const progress = { ...change, rows_done: this.#done }
    const isHeld = await this.#platform.database.transaction((tx) =>
      EXPORT_QUEUE.renew(tx, this.#job, now + EXPORT_LEASE_MS, progress),
    )
    if (!isHeld) throw new LeaseLost()
    this.#renewedAt = now
  }

  /** Returns false when another worker holds the job. */
  finish(key: string): Promise<boolean> {
    const now = this.#platform.clock.now()
    return this.#complete({
      state: 'succeeded',
      rows_done: this.#done,
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
    const defer = (dueAt: number, change: Partial<ExportJobRow>) =>
      this.#platform.database.transaction((tx) => EXPORT_QUEUE.defer(tx, this.#job, dueAt, change))
    if (this.#stop.aborted) {
      await defer(now, { attempts: attempts - 1 })
    } else if (attempts < MAX_ATTEMPTS) {
      log.warn({ err: error, job: id, attempts }, 'an export failed; it is retried')
      await defer(now + retryDelay(attempts, RETRY, randomInt(1_000_000) / 1_000_000), {})
    } else {
      log.error({ err: error, job: id }, 'an export failed')
      await this.#complete({ state: 'failed', finished_at: now, error: GAVE_UP })
    }
  }

  #complete(result: Partial<ExportJobRow>): Promise<boolean> {
    return this.#platform.database.transaction((tx) => EXPORT_QUEUE.complete(tx, this.#job, result))
  }
}

/** When the next export is due (epoch ms); `null` while none waits. */
export function nextExportDueAt(platform: Platform): Promise<number | null> {
  return EXPORT_QUEUE.nextDueAt(platform.database.reader)
}

/** Removes expired files and old jobs. Returns how many files it removed. */
export async function sweepExports(platform: Platform, storage: FileStorage): Promise<number> {
  const now = platform.clock.now()
  const expired = await expiredFiles(platform.database.reader, now, SWEPT_FILES)
  for (const { id, file_key } of expired) {
    if (file_key?.startsWith(`${id}-`)) await storage.remove(file_key)
    await platform.database.transaction((tx) => forgetFile(tx, id))
  }
  await platform.database.transaction((tx) => deleteFinished(tx, now - JOB_LIFETIME_MS))
  return expired.length
}
