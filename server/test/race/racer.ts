import { pino } from 'pino'
import { createOrderReader } from '../../jobs/order-reader.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { openDatabase } from '../../platform/database/open-database.ts'
import type { Platform } from '../../platform/platform.ts'
import { countedReader } from '../testkit/counted-reader.ts'
import { seededRandom } from '../testkit/seeded-random.ts'
import { platformOver } from '../testkit/testbed.ts'
import { writeUnsynced } from '../testkit/unsynced.ts'
import { noisyDatabase, sharedNow, type Trace } from './noise.ts'
import { clientOf, perform, prepare, type Task } from './tasks.ts'

/** Where the contests to come are held. */
export interface Place {
  databaseUrl: string
  processorUrl: string
}

/** One contest for this side. */
export interface Order {
  task: Task
  /** What this side's clock says, epoch ms. */
  clock: number
  seed: number
}

export interface Start {
  /** On the clock that all processes share. */
  startAt: number
}

export interface Report extends Trace {
  /** The answer, or the code of a refusal. */
  outcome: { ok: unknown } | { refused: string } | { broke: string }
  /** Lines that were logged as errors. */
  errors: string[]
}

const ERROR = 50

/** A process of its own with its own connections: a second worker, scheduler or web server. */
function race(): void {
  let place: Awaited<ReturnType<typeof enter>> | null = null
  let order: Order | null = null
  process.on('message', async (message: Place | Order | Start | 'stop') => {
    if (message === 'stop') {
      await place?.close()
      process.disconnect()
    } else if ('databaseUrl' in message) {
      await place?.close()
      place = await enter(message)
      process.send?.('ready')
    } else if ('task' in message) {
      order = message
      await place?.prepare(order)
      process.send?.('set')
    } else if (place && order) {
      process.send?.(await place.run(order, message.startAt))
    }
  })
}

async function enter({ databaseUrl, processorUrl }: Place) {
  const database = await openDatabase(databaseUrl, { create: false })
  // On PostgreSQL it is a setting of the database, made already.
  if (database.dialect === 'sqlite') await writeUnsynced(database)
  let clockNow = 0
  const processor = clientOf(processorUrl, () => clockNow)
  const ownPlatform = platformOver(database, databaseUrl, { now: () => clockNow }, QUARTERLY)
  const reader = countedReader(createOrderReader(ownPlatform))
  const processorAndReader = { processor, reader }
  return {
    async prepare({ task, clock }: Order): Promise<void> {
      clockNow = clock
      await prepare({ platform: ownPlatform, ...processorAndReader }, task)
    },
    async run({ task, clock, seed }: Order, startAt: number): Promise<Report> {
      const trace: Trace = { spans: [], repeats: 0 }
      const errors: string[] = []
      const noisy = noisyDatabase(database, seededRandom(seed), trace)
      const platform: Platform = {
        ...platformOver(noisy, databaseUrl, { now: () => clock }, QUARTERLY),
        log: pino({ level: 'error' }, { write: (line: string) => note(errors, line) }),
      }
      while (sharedNow() < startAt) {
        // Both sides stand ready; a timer would let them go milliseconds apart.
      }
      const outcome = await outcomeOf(perform({ platform, ...processorAndReader }, task))
      return { outcome, errors, ...trace }
    },
    async close() {
      await reader.close()
      await Promise.all([database.close(), processor.close()])
    },
  }
}

/** Schedules that a test's scheduler never comes to; what is due when it starts it does at once. */
const QUARTERLY = { SCHEDULE_BILLING: '0 0 1 1 *', SCHEDULE_PAYOUTS: '0 0 1 1 *' }

function note(errors: string[], line: string): void {
  const { level, msg, err } = JSON.parse(line)
  if (level >= ERROR) errors.push(`${msg}: ${err?.message ?? ''}`)
}

async function outcomeOf(work: Promise<unknown>): Promise<Report['outcome']> {
  try {
    return { ok: (await work) ?? null }
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.code }
    return { broke: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

race()
