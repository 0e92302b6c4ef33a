import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openDatabase } from '../../platform/database/open-database.ts'
import type { Platform } from '../../platform/platform.ts'
import { openTestDatabase, type TestDatabase, type TestDialect } from '../testkit/databases.ts'
import { verify } from '../testkit/marketplace.ts'
import { PiledOrders } from '../testkit/piled-orders.ts'
import { platformOver } from '../testkit/testbed.ts'
import type { Drain } from './drainer.ts'

const DRAINER = fileURLToPath(new URL('drainer.ts', import.meta.url))
const NOW = Date.parse('2026-11-01T07:00:00.000Z')
const STORES = 7
/** So small that a pile of hundreds is many of them. */
const BATCH = 16
const DELIVERIES = 400
const DEATHS_A_PILE = 2
/** A batch takes some fifteen statements: a drainer dies in one of its first few. */
const WITHIN_ANSWERS = 60
/** A server of PostgreSQL's may hold on to the stores of a drainer that is dead, as long as it has not noticed. */
const MOST_FINISHERS = 5

export interface KilledDrain {
  deaths: number
  orders: number
}

/** Orders pile up, and one worker after the other dies over them. */
export async function killDrains(dialect: TestDialect, random: () => number): Promise<KilledDrain> {
  const testDatabase = await openTestDatabase(dialect)
  try {
    const pile = await PiledOrders.open(platformOf(testDatabase), STORES)
    const orders = await pile.pile(platformOf(testDatabase), DELIVERIES)
    // An open connection here would keep SQLite from recovering the file after a death.
    if (dialect === 'sqlite') await testDatabase.database.close()
    let lives = 0
    const dying = Array.from({ length: DEATHS_A_PILE }, () => 1 + Math.floor(random() * WITHIN_ANSWERS))
    for (const dieAfter of dying) {
      await drainUntil(testDatabase.url, lives++, dieAfter)
      await look(testDatabase, verify)
    }
    const waiting = () => look(testDatabase, (platform) => pile.waiting(platform))
    assert.ok((await waiting()) > BATCH, 'the dead have left enough to do')
    for (let finishers = 0; finishers < MOST_FINISHERS && (await waiting()) > 0; finishers += 1) {
      await drainUntil(testDatabase.url, lives++, null)
    }
    await look(testDatabase, verify)
    assert.equal(await look(testDatabase, (platform) => pile.differences(platform)), [])
    return { deaths: dying.length, orders }
  } finally {
    await testDatabase.close()
  }
}

function platformOf({ database, url }: Pick<TestDatabase, 'database' | 'url'>): Platform {
  return platformOver(database, url, { now: () => NOW })
}

async function look<T>(testDatabase: TestDatabase, work: (platform: Platform) => Promise<T>): Promise<T> {
  const { url, database: kept } = testDatabase
  const database = kept.dialect === 'sqlite' ? await openDatabase(url, { create: false }) : kept
  try {
    return await work(platformOf({ database, url }))
  } finally {
    if (database !== kept) await database.close()
  }
}

/** One worker's life, `lives` after the first one: the leases of the dead have run out by then. */
async function drainUntil(databaseUrl: string, lives: number, dieAfter: number | null): Promise<void> {
  const order: Drain = { databaseUrl, now: NOW + lives * 60_000, batchSize: BATCH, dieAfter }
  const child = spawn(process.execPath, [DRAINER, JSON.stringify(order)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exit = once(child, 'exit')
  const complaints = await text(child.stderr)
  const [code, signal] = await exit
  const ended = `a drainer that was to die ${dieAfter === null ? 'never' : `after ${dieAfter} answers`} ended`
  assert.is(
    signal ?? code,
    dieAfter === null ? 0 : 'SIGKILL',
    `${ended} with ${signal ?? code}: ${complaints}`,
  )
}
