import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { migrate } from '../../platform/migrator.ts'
import { type OpenDatabase, openDatabase } from '../../platform/open-database.ts'

export const DIALECTS = ['sqlite', 'postgresql'] as const
export type TestDialect = (typeof DIALECTS)[number]

export interface TestDatabase {
  database: OpenDatabase
  url: string
  /** A folder of its own beside the database, for keys and files. */
  folder: string
  close(): Promise<void>
}

/** The databases to test on: both, unless the runner was told to leave PostgreSQL out. */
export function testDialects(): readonly TestDialect[] {
  return process.env.TEST_SQLITE_ONLY ? ['sqlite'] : DIALECTS
}

/** A fresh, migrated (unless told otherwise) database that goes when it is closed. */
export async function openTestDatabase(
  dialect: TestDialect,
  options: { migrated?: boolean } = {},
): Promise<TestDatabase> {
  const migrated = options.migrated ?? true
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-test-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  if (dialect === 'sqlite') {
    const url = `sqlite:${join(folder, 'affiliate.db')}`
    const database = await openDatabase(url, { create: true })
    if (migrated) await migrate(database)
    return {
      database,
      url,
      folder,
      async close() {
        await database.close()
        removeFolder()
      },
    }
  }
  const name = `test_${process.pid}_${counter++}`
  if (migrated) await makeTemplate()
  await administer(`create database ${name} ${migrated ? `template ${TEMPLATE}` : ''}`)
  const url = databaseUrl(name)
  const database = await openDatabase(url, { create: true })
  return {
    database,
    url,
    folder,
    async close() {
      await database.close()
      await administer(`drop database if exists ${name} with (force)`)
      removeFolder()
    },
  }
}

let counter = 1
let templateMade: Promise<void> | undefined
const TEMPLATE = `template_${process.pid}`

/** One migrated database a process, which the others are copied from. */
function makeTemplate(): Promise<void> {
  templateMade ??= (async () => {
    await administer(`drop database if exists ${TEMPLATE}`)
    await administer(`create database ${TEMPLATE}`)
    const database = await openDatabase(databaseUrl(TEMPLATE), { create: true })
    await migrate(database)
    await database.close()
  })()
  return templateMade
}

function databaseUrl(name: string): string {
  const server = process.env.TEST_POSTGRES_URL
  if (!server) throw new Error('TEST_POSTGRES_URL is not set: run this through "npm test -- <file>"')
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function administer(statement: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl('postgres') })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
