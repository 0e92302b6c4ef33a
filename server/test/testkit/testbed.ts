import { reportTamperedRow } from '../../flags/forged-rows.service.ts'
import { Caches } from '../../platform/cache/caches.ts'
import type { Clock } from '../../platform/clock.ts'
import { readConfig } from '../../platform/config.ts'
import { type AppKeys, createAppKeys } from '../../platform/crypto/key-ring.ts'
import { createVault } from '../../platform/crypto/vault.ts'
import type { Database } from '../../platform/database/database.ts'
import { type OpenDatabase, openDatabase } from '../../platform/database/open-database.ts'
import { withRowKeys } from '../../platform/database/protected-rows.ts'
import { systemIds } from '../../platform/ids.ts'
import { createLog } from '../../platform/log.ts'
import type { Platform } from '../../platform/platform.ts'
import { Topics } from '../../platform/topics.ts'
import { openTestDatabase, type TestDatabase, type TestDialect } from './databases.ts'

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now: number

  constructor(start: string) {
    this.#now = Date.parse(start)
  }

  now(): number {
    return this.#now
  }

  /** Moves on by `ms`. */
  pass(ms: number): void {
    this.#now += ms
  }

  set(time: string): void {
    this.#now = Date.parse(time)
  }
}

export type Testbed = Awaited<ReturnType<typeof openTestbed>>

/** The testbeds' APP_KEY. */
export const TESTBED_KEY = Buffer.alloc(32, 7)

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** The platform with other keys, over the same database. */
export function withKeys(platform: Platform, keys: AppKeys): Platform {
  return { ...platform, keys, vault: createVault(keys), database: withRowKeys(platform.database, keys) }
}

/** A platform over a fresh database with a clock at 1 November 2026, noon in Karachi. */
export async function openTestbed(dialect: TestDialect, settings: Record<string, string> = {}) {
  const testDatabase = await openTestDatabase(dialect)
  const clock = new ManualClock('2026-11-01T07:00:00.000Z')
  const platform = platformOver(testDatabase.database, testDatabase.url, clock, settings)
  return { platform, clock, testDatabase, close: () => testDatabase.close() }
}

/** What services are given, over a database that is open already: of a testbed, or of another process beside it. */
export function platformOver(
  database: Database,
  url: string,
  clock: Clock,
  settings: Record<string, string> = {},
): Platform {
  const config = readConfig({
    ...{ DATABASE_URL: url, LOG_LEVEL: 'silent' },
    ...{ RATE_LIMIT_AUTH: '0', RATE_LIMIT_PUBLIC: '0', RATE_LIMIT_USER: '0' },
    ...settings,
  })
  const keys = createAppKeys(TESTBED_KEY)
  const platform: Platform = {
    config,
    database: withRowKeys(database, keys, (row) => platform.reportTampered(row)),
    clock,
    ids: systemIds,
    keys,
    vault: createVault(keys),
    log: createLog(config.LOG_LEVEL),
    topics: new Topics(),
    caches: new Caches({ maxEntries: 1000 }),
    reportTampered: (row) => reportTamperedRow(platform, row),
    publicBaseUrl: config.PUBLIC_BASE_URL ?? 'http://127.0.0.1:3000',
  }
  return platform
}

/** Looks beside a service into its database. SQLite's file is opened for it: a connection that stays open would keep it from being recovered. */
export async function lookInto<T>(
  { database: kept, url }: Pick<TestDatabase, 'url'> & { database?: OpenDatabase },
  clock: Clock,
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const database = kept?.dialect === 'postgresql' ? kept : await openDatabase(url, { create: false })
  try {
    return await work(platformOver(database, url, clock))
  } finally {
    if (database !== kept) await database.close()
  }
}
