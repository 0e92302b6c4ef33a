import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { Client } from 'pg'
import { type App, openApp } from '../../server/app.ts'
import { migrate } from '../../server/migrator.ts'
import type { BenchDialect, BenchOptions } from './options.ts'

/** A database of its own for one bench, and what a process needs to work on it. */
export interface Bed {
  dialect: BenchDialect
  rounds: number
  seconds: number
  url: string
  folder: string
  /** For the server and for every other process that opens the same database. */
  environment: Record<string, string>
  app: App
  close(): Promise<void>
}

let counter = 1

/** Opens a fresh, migrated database that syncs what it commits; throws when it does not. */
export async function openBed(
  dialect: BenchDialect,
  options: BenchOptions,
  postgresUrl: string | null,
): Promise<Bed> {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-bench-'))
  const name = `bench_${process.pid}_${counter++}`
  const url = dialect === 'sqlite' ? `sqlite:${join(folder, 'bench.db')}` : named(postgresUrl, name)
  if (dialect === 'postgresql') await administer(postgresUrl, `create database ${name}`)
  const environment = {
    DATABASE_URL: url,
    DATA_DIR: folder,
    APP_KEY: randomBytes(32).toString('base64'),
    SCHEDULE_BILLING: 'off',
    SCHEDULE_PAYOUTS: 'off',
  }
  const app = await openApp({ create: true, environment: { ...environment, LOG_LEVEL: 'silent' } })
  await migrate(app.database)
  await assertDurable(app)
  const { rounds, seconds } = options
  return {
    dialect,
    rounds,
    seconds,
    url,
    folder,
    environment,
    app,
    async close() {
      await app.close()
      if (dialect === 'postgresql') await administer(postgresUrl, `drop database ${name} with (force)`)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const FULL = 2

async function assertDurable({ database }: App): Promise<void> {
  const show = async (text: string) =>
    Object.values(
      (await sql<Record<string, unknown>>`${sql.raw(text)}`.execute(database.writer)).rows[0] ?? {},
    )[0]
  const wanted: [string, unknown][] =
    database.dialect === 'sqlite'
      ? [
          ['pragma synchronous', FULL],
          ['pragma journal_mode', 'wal'],
        ]
      : [
          ['show fsync', 'on'],
          ['show synchronous_commit', 'on'],
          ['show full_page_writes', 'on'],
        ]
  for (const [question, answer] of wanted) {
    const found = await show(question)
    if (found !== answer)
      throw new Error(`"${question}" says ${found}: figures without it would be worth nothing`)
  }
}

function named(postgresUrl: string | null, name: string): string {
  if (!postgresUrl) throw new Error('no PostgreSQL was started')
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  return url.href
}

async function administer(postgresUrl: string | null, statement: string): Promise<void> {
  const client = new Client({ connectionString: postgresUrl ?? '' })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
