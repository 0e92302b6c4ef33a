import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { Client } from 'pg'
import { z } from 'zod'
import { systemClock } from '../../platform/clock.ts'
import { createAppKeys } from '../../platform/crypto/key-ring.ts'
import { createVault } from '../../platform/crypto/vault.ts'
import { withRowKeys } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { openTestDatabase, type TestDatabase, type TestDialect } from './databases.ts'
import { platformOver } from './testbed.ts'

const FIXTURES = new URL('../../../fixtures/databases/', import.meta.url)

const fixtureSchema = z.strictObject({ commit: z.string(), app_key: z.string(), password: z.string() })

/** A copy of a database as an earlier commit left it, with rows in every table. Nothing is migrated yet. */
export interface FixtureDatabase extends TestDatabase {
  /** APP_KEY, which sealed the secrets. */
  appKey: string
  /** The password of every account. Addresses are `NAME@fixture.example`, webhook secrets `secret of DOMAIN`. */
  password: string
  /** Its services' platform, with its key and the system's clock. */
  platform: Platform
}

/** The commits that have fixture databases. */
export function fixtureCommits(): string[] {
  return readdirSync(FIXTURES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

/** Loads the fixture database of `commit` into a database of its own, which goes when it is closed. */
export async function openFixtureDatabase(dialect: TestDialect, commit: string): Promise<FixtureDatabase> {
  const folder = new URL(`${commit}/`, FIXTURES)
  const fixture = fixtureSchema.parse(JSON.parse(readFileSync(new URL('fixture.json', folder), 'utf8')))
  const load = async (url: string) => {
    if (dialect === 'sqlite') {
      writeFileSync(url.slice('sqlite:'.length), unzip(new URL('sqlite.db.gz', folder)), { mode: 0o600 })
    } else await runSql(url, unzip(new URL('postgresql.sql.gz', folder)).toString('utf8'))
  }
  const opened = await openTestDatabase(dialect, { migrated: false, load })
  const keys = createAppKeys(Buffer.from(fixture.app_key, 'base64'))
  return {
    ...opened,
    appKey: fixture.app_key,
    password: fixture.password,
    platform: {
      ...platformOver(withRowKeys(opened.database, keys), opened.url, systemClock),
      keys,
      vault: createVault(keys),
    },
  }
}

function unzip(file: URL): Buffer {
  return gunzipSync(readFileSync(fileURLToPath(file)))
}

/** On a connection of its own, since the script changes the session's settings. */
async function runSql(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}
