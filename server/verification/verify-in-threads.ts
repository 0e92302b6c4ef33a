import { Worker } from 'node:worker_threads'
import { JOURNAL_PURPOSES } from '../ledger/journal-keys.ts'
import { type AppKeys, deriveKeys } from '../platform/crypto/key-ring.ts'
import { VAULT_PURPOSES } from '../platform/crypto/vault.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import {
  type Breach,
  countTables,
  cutByKey,
  hasSoMany,
  type Invariant,
  keyOf,
  MOST_BREACHES,
} from './invariant.ts'
import { INVARIANTS, type InvariantResult } from './verify-books.ts'
import type { Task, ThreadData, Told } from './verify-thread.ts'

/** What the invariants need keys for. */
const PURPOSES = [...VAULT_PURPOSES, ...JOURNAL_PURPOSES]

const THREADS = 2
/** Parts of a check that reads pages: enough that no thread is left with a long one at the end. */
const PARTS = 16
/** A row whose check needs our own code takes about as long as so many that the database checks by itself. */
const OWN_CODE_WEIGHT = 10
/** So many rows of sales or of entries: threads take most of a second to begin. */
const WORTH_THREADS = 50_000

/** Room for young objects: pages of rows must not be copied again and again before they go. */
const ROOM = { maxYoungGenerationSizeMb: 64 }

export interface Progress {
  /** The checks that are under way. */
  names: string[]
  checksDone: number
  checks: number
  /** Whole percent of the work, by rows. */
  percent: number
}

/** Whether there is so much to look at that several threads are quicker than one. To count all of it takes as long as a check. */
export async function isWorthThreads(db: Queries): Promise<boolean> {
  for (const table of ['sales', 'ledger_entries']) {
    if (await hasSoMany(db, table, WORTH_THREADS)) return true
  }
  return false
}

interface Check {
  invariant: Invariant
  rows: number
  parts: Task[]
  partsLeft: number
  breaches: Breach[]
  ms: number
}

/**
 * The same as `verifyBooks`, with several threads, each with a connection of its own to the database at `url`. `db` is
 * for the little that is asked here.
 */
export async function verifyInThreads(
  url: string,
  { db, keys }: { db: Queries; keys: AppKeys },
  onProgress: (progress: Progress) => void,
): Promise<InvariantResult[]> {
  // In memory only: neither an argument nor the environment, which other processes can read.
  const workerData: ThreadData = { url, keys: deriveKeys(keys, PURPOSES) }
  // They load what they need while it is counted what there is to do.
  const workers = Array.from(
    { length: THREADS },
    () => new Worker(threadFile(), { workerData, resourceLimits: ROOM }),
  )
  let checks: Check[]
  try {
    checks = await checksOf(db)
    const desk = new Desk(checks, onProgress)
    await Promise.all(workers.map((worker) => desk.employ(worker)))
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  return checks.map(({ invariant: { name, statement }, rows, breaches, ms }) => {
    return { name, statement, rows, breaches: eachOnce(breaches).slice(0, MOST_BREACHES), ms }
  })
}

/** Two parts may come upon the same thing. */
function eachOnce(breaches: readonly Breach[]): Breach[] {
  return [...new Map(breaches.map((breach) => [JSON.stringify(breach), breach])).values()]
}

/** Beside this file, in the sources and in what is made of them. */
function threadFile(): URL {
  return new URL(import.meta.url.replace(/verify-in-threads(\.[jt]s)$/, 'verify-thread$1'))
}

async function checksOf(db: Queries): Promise<Check[]> {
  const rows = await countTables(
    db,
    INVARIANTS.map(({ table }) => table),
  )
  return Promise.all(INVARIANTS.map((invariant) => checkOf(db, invariant, rows.get(invariant.table) ?? 0)))
}

async function checkOf(db: Queries, invariant: Invariant, rows: number): Promise<Check> {
  const { table } = invariant
  const key = keyOf(invariant, dialectOf(db))
  const cuts = key === null ? [] : await cutByKey(db, { table, key, rows }, PARTS)
  const parts = [null, ...cuts].map((after, index) => {
    return { name: invariant.name, after, upTo: cuts[index] ?? null }
  })
  return { invariant, rows, parts, partsLeft: parts.length, breaches: [], ms: 0 }
}

function weightOf({ invariant, rows }: Check): number {
  return rows * (invariant.key ? OWN_CODE_WEIGHT : 1)
}

/**
 * First what cannot be cut, since a thread may sit over it for long; then the parts, of which the last leave no thread
 * waiting for the other. Of each the heaviest first.
 */
function inTurn(checks: readonly Check[]): Check[] {
  const whole = (check: Check) => (check.parts.length > 1 ? 0 : 1)
  return checks.toSorted((a, b) => whole(b) - whole(a) || weightOf(b) - weightOf(a))
}

/** Hands out the tasks in turn, and gathers what comes of them. */
class Desk {
  readonly #checks: Map<string, Check>
  readonly #tasks: Task[]
  readonly #total: number
  readonly #onProgress: (progress: Progress) => void
  readonly #underWay: string[] = []
  #done = 0

  constructor(checks: readonly Check[], onProgress: (progress: Progress) => void) {
    this.#checks = new Map(checks.map((check) => [check.invariant.name, check]))
    this.#tasks = inTurn(checks).flatMap((check) => check.parts)
    this.#total = checks.reduce((sum, check) => sum + weightOf(check), 0)
    this.#onProgress = onProgress
  }

  /** Gives a thread one task after the other; resolves when there are no more, and throws what the thread failed with. */
  employ(worker: Worker): Promise<void> {
    return new Promise((resolve, reject) => {
      const next = () => {
        const task = this.#tasks.shift()
        if (!task) return resolve()
        this.#underWay.push(task.name)
        this.#tellProgress()
        worker.postMessage(task)
      }
      worker.on('error', reject)
      worker.on('message', (told: Told) => {
        if (told.kind === 'failed') return reject(Object.assign(new Error(told.message), { code: told.code }))
        if (told.kind === 'done') this.#finish(told)
        else this.#advance(told.name, told.rows)
        if (told.kind === 'done') next()
      })
      next()
    })
  }

  #advance(name: string, rows: number): void {
    if (this.#checks.get(name)?.invariant.key) this.#done += rows * OWN_CODE_WEIGHT
    this.#tellProgress()
  }

  #finish({ name, breaches, ms }: Extract<Told, { kind: 'done' }>): void {
    const check = this.#checks.get(name)
    if (!check) return
    check.breaches.push(...breaches)
    check.ms += ms
    check.partsLeft -= 1
    if (!check.invariant.key) this.#done += check.rows
    this.#underWay.splice(this.#underWay.indexOf(name), 1)
    this.#tellProgress()
  }

  #tellProgress(): void {
    const checks = [...this.#checks.values()]
    this.#onProgress({
      names: [...new Set(this.#underWay)],
      checksDone: checks.filter((check) => check.partsLeft === 0).length,
      checks: checks.length,
      percent: Math.min(100, Math.floor((100 * this.#done) / Math.max(1, this.#total))),
    })
  }
}
