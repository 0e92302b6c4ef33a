import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { sqliteFileOf } from '../../platform/config.ts'
import { sqliteFault } from '../../platform/database/database-faults.ts'
import { World } from '../kill/world.ts'
import { type CommitProxy, openCommitProxy } from './commit-proxy.ts'

/** A server whose database can be made to stand still. */
export interface Stalling {
  world: World
  stall(): Promise<void>
  flow(): void
  close(): Promise<void>
}

/** SQLite stalls while another connection holds the write lock. */
export async function openLockedSqlite(): Promise<Stalling> {
  let file = ''
  const world = await World.open('sqlite', async (url) => {
    file = sqliteFileOf(url) ?? ''
    return {}
  })
  let rival: BetterSqlite.Database | null = null
  const flow = () => {
    rival?.close()
    rival = null
  }
  return {
    world,
    async stall() {
      const other = new BetterSqlite(file, { timeout: 0 })
      rival = other
      // Waiting for its turn in SQLite itself would hold up this process, which measures.
      while (!hasBegun(other)) await pause(1)
    },
    flow,
    async close() {
      flow()
      await world.close()
    },
  }
}

function hasBegun(database: BetterSqlite.Database): boolean {
  try {
    database.exec('begin immediate')
    return true
  } catch (error) {
    if (sqliteFault(error)?.kind === 'contention') return false
    throw error
  }
}

/** A server that reaches PostgreSQL through a line of ours. */
export async function openStalledPostgres(): Promise<Stalling & { proxy: CommitProxy }> {
  const opened = Promise.withResolvers<CommitProxy>()
  const world = await World.open('postgresql', async (databaseUrl) => {
    const through = new URL(databaseUrl)
    const line = await openCommitProxy({ host: through.hostname, port: Number(through.port) })
    opened.resolve(line)
    through.host = `127.0.0.1:${line.port}`
    return { DATABASE_URL: through.href }
  })
  const proxy = await opened.promise
  return {
    world,
    proxy,
    stall: async () => proxy.stall(),
    flow: () => proxy.flow(),
    async close() {
      proxy.flow()
      await world.close()
      await proxy.close()
    },
  }
}
