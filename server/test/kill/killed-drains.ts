import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import type { Platform } from '../../platform/platform.ts'
import { openTestDatabase, type TestDatabase, type TestDialect } from '../testkit/databases.ts'
import { verify } from '../testkit/marketplace.ts'
import { PiledOrders } from '../testkit/piled-orders.ts'
import { lookInto, platformOver } from '../testkit/testbed.ts'
import type { Drain, LastWord } from './drainer.ts'

const DRAINER = fileURLToPath(new URL('drainer.ts', import.meta.url))
const NOW = Date.parse('2026-11-01T07:00:00.000Z')
const CLOCK = { now: () => NOW }
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
  /** Taken as the thread had read them, by the dead too. */
  readAhead: number
}

/** Orders pile up, and one worker after the other dies over them, with the thread at work that reads them ahead. */
export async function killDrains(dialect: TestDialect, random: () => number): Promise<KilledDrain> {
  const testDatabase = await openTestDatabase(dialect)
  try {
    const platform = platformOver(testDatabase.database, testDatabase.url, CLOCK)
    const pile = await PiledOrders.open(platform, STORES)
    const orders = await pile.pile(platform, DELIVERIES)
    // An open connection here would keep SQLite from recovering the file after a death.
    if (dialect === 'sqlite') await testDatabase.database.close()
    const words: LastWord[] = []
    const dying = Array.from({ length: DEATHS_A_PILE }, () => 1 + Math.floor(random() * WITHIN_ANSWERS))
    for (const dieAfter of dying) {
      words.push(await drainUntil(testDatabase.url, words.length, dieAfter))
      await look(testDatabase, verify)
    }
    const waiting = () => look(testDatabase, (platform) => pile.waiting(platform))
    assert.ok((await waiting()) > BATCH, 'the dead have left enough to do')
    for (let finishers = 0; finishers < MOST_FINISHERS && (await waiting()) > 0; finishers += 1) {
      words.push(await drainUntil(testDatabase.url, words.length, null))
    }
    await look(testDatabase, verify)
    assert.equal(await look(testDatabase, (platform) => pile.differences(platform)), [])
    for (const { used, ready } of words.slice(0, DEATHS_A_PILE)) {
      assert.ok(used + ready > 0, 'one died before its thread had read anything')
    }
    const readAhead = words.reduce((sum, { used }) => sum + used, 0)
    assert.ok(readAhead > orders / 4, `only ${readAhead} of ${orders} orders were taken as read ahead`)
    return { deaths: dying.length, orders, readAhead }
  } finally {
    await testDatabase.close()
  }
}

function look<T>(testDatabase: TestDatabase, work: (platform: Platform) => Promise<T>): Promise<T> {
  return lookInto(testDatabase, CLOCK, work)
}

/** One worker's life, `lives` after the first one: the leases of the dead have run out by then. */
async function drainUntil(databaseUrl: string, lives: number, dieAfter: number | null): Promise<LastWord> {
  const order: Drain = { databaseUrl, now: NOW + lives * 60_000, batchSize: BATCH, dieAfter }
  const child = spawn(process.execPath, [DRAINER, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(child, 'exit')
  const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code, signal] = await exit
  const ended = `a drainer that was to die ${dieAfter === null ? 'never' : `after ${dieAfter} answers`} ended`
  assert.is(
    signal ?? code,
    dieAfter === null ? 0 : 'SIGKILL',
    `${ended} with ${signal ?? code}: ${complaints}`,
  )
  return JSON.parse(said)
}
