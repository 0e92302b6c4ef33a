import { advisoryLock } from '../platform/database/database.ts'
import { readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import type { Platform } from '../platform/platform.ts'
import { compareVisitors, deleteVisitorsBefore, type FirstVisit } from './clicks.store.ts'
import { KEY_LIFETIME_MS, newKey, REPEAT_WITHIN_MS, type VisitorKey } from './visitors.ts'

const FLUSH_AFTER_MS = 1000
/** With more, further visitors count as those of this process alone. */
const MAX_PENDING = 50_000
const KEY = 'visitor key'

/**
 * PostgreSQL: what the web processes know of visitors together. A visit that a process takes for the first of its visitor is compared with
 * those of the others a second later, away from the redirect; one that repeats another's is taken off the unique visits.
 */
export class SharedVisitors {
  readonly #platform: Platform
  #pending = new Map<string, FirstVisit>()
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Notes visits whose clicks are stored. */
  add(visits: readonly FirstVisit[]): void {
    for (const visit of visits) {
      if (this.#pending.size < MAX_PENDING) this.#pending.set(visit.link_id + visit.visitor, visit)
    }
    if (this.#pending.size > 0) this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS).unref()
  }

  /** Resolves when all noted visits are compared. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.then(() => this.#compare())
    return this.#flushing
  }

  async #compare(): Promise<void> {
    const { database, log } = this.#platform
    const visits = [...this.#pending].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, visit]) => visit)
    this.#pending = new Map()
    if (visits.length === 0) return
    try {
      await database.transaction((tx) => compareVisitors(tx, visits, REPEAT_WITHIN_MS))
    } catch (error) {
      // They stay unique visits, as they were counted.
      log.warn({ err: error, visits: visits.length }, 'cannot compare visitors with other processes')
    }
  }
}

/** PostgreSQL: deletes the visitors who would count again. */
export async function removeOldVisitors({ database, clock }: Platform): Promise<void> {
  if (database.dialect === 'sqlite') return
  await database.transaction((tx) => deleteVisitorsBefore(tx, clock.now() - REPEAT_WITHIN_MS))
}

/** PostgreSQL: the key by which all processes hash addresses, made again after a day. The former one is not kept. */
export function readVisitorKey({ database, clock }: Platform): Promise<VisitorKey> {
  return database.transaction(async (tx) => {
    await advisoryLock(tx, KEY)
    const [madeAt, text] = ((await readWatermark(tx, KEY)) ?? '0 ').split(' ') as [string, string]
    if (clock.now() - Number(madeAt) <= KEY_LIFETIME_MS) return { text, madeAt: Number(madeAt) }
    const made = { text: newKey(), madeAt: clock.now() }
    await setWatermark(tx, KEY, `${made.madeAt} ${made.text}`)
    return made
  })
}
