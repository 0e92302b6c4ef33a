import { sql } from 'kysely'
import { grantStatements } from '../../migrations/grants.ts'
import { openPostgres } from '../../platform/database/postgresql.ts'
import type { TestDatabaseOptions } from './databases.ts'

/** A role that owns nothing. Roles belong to the server, so all test databases share it. */
export const SERVICE_ROLE = 'affiliate_test_service'
const PASSWORD = 'a password for tests'
/** https://www.postgresql.org/docs/current/errcodes-appendix.html: it exists, or another test makes it at this moment. */
const EXISTS = ['42710', '23505', 'XX000']

/** Makes the role and returns the address of the same database for it, with no privilege granted yet. */
export async function addServiceRole(ownerUrl: string): Promise<string> {
  await asOwner(ownerUrl, async (database) => {
    await sql`create role ${sql.id(SERVICE_ROLE)} login password ${sql.lit(PASSWORD)}`
      .execute(database.writer)
      .catch((error) => {
        if (!EXISTS.includes(error.code)) throw error
      })
  })
  const url = new URL(ownerUrl)
  url.username = SERVICE_ROLE
  url.password = encodeURIComponent(PASSWORD)
  return url.href
}

/** Grants the role what `affiliate db grants` grants. */
export function grantToServiceRole(ownerUrl: string): Promise<void> {
  return asOwner(ownerUrl, async (database) => {
    for (const statement of await grantStatements(database, SERVICE_ROLE)) {
      await sql.raw(statement).execute(database.writer)
    }
  })
}

/** For `openTestDatabase`: the owner has migrated the database, and it is opened as the role. */
export const AS_SERVICE_ROLE: TestDatabaseOptions = {
  migrated: true,
  async openAs(ownerUrl) {
    const url = await addServiceRole(ownerUrl)
    await grantToServiceRole(ownerUrl)
    return url
  },
}

async function asOwner(
  ownerUrl: string,
  work: (database: ReturnType<typeof openPostgres>) => Promise<void>,
): Promise<void> {
  const database = openPostgres(ownerUrl, { poolSize: 1 })
  try {
    await work(database)
  } finally {
    await database.close()
  }
}
