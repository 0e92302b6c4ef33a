import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { sql } from 'kysely'
import { type Config, dataFolder, sqliteFileOf } from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { MAX_SKEW_MS, skewOf, skewText } from '../../server/processes/clock-skew.rule.ts'
import { type Finding, type Found, fail, info, ok, warn, wordsOf } from './finding.ts'

const LITTLE = 1_000_000_000
const TOO_LITTLE = 100_000_000

export async function examineDisk(config: Config): Promise<Finding[]> {
  const file = sqliteFileOf(config.DATABASE_URL)
  const folders = new Set([...(file === null ? [] : [resolve(dirname(file))]), resolve(dataFolder(config))])
  return Promise.all([...folders].map(examineFolder))
}

async function examineFolder(folder: string): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return judgeSpace(folder, bavail * bsize)
  } catch (error) {
    return warn('disk', `${folder}: ${wordsOf(error)}`, 'It is made when the service starts first.')
  }
}

export function judgeSpace(folder: string, free: number): Finding {
  const detail = `${(free / 1e9).toFixed(1)} GB free for ${folder}`
  if (free < TOO_LITTLE)
    return fail('disk', detail, 'Free space now: a full disk refuses every webhook and click.')
  if (free < LITTLE) return warn('disk', detail, 'Free some space, or move the data to a larger disk.')
  return ok('disk', detail)
}

/** Signed webhooks are refused from five minutes on; long before that, orders and clicks are misjudged. */
const MOST_MS = 30_000
const MEND = 'Let the machine keep its time by NTP (timedatectl set-ntp true).'

export async function examineClock(database: OpenDatabase | null): Promise<Found> {
  if (!database) return info('clock', new Date().toISOString())
  return [
    await againstRows(database),
    database.dialect === 'postgresql' ? await againstServer(database) : null,
  ]
}

async function againstServer(database: OpenDatabase): Promise<Finding> {
  const before = Date.now()
  const { rows } = await sql<{ at: number }>`
    select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as at`.execute(database.reader)
  const skew = skewOf({ before, database: rows[0]?.at ?? before, after: Date.now() })
  const detail = skewText(skew)
  return Math.abs(skew) > MAX_SKEW_MS ? fail('clock', detail, MEND) : ok('clock', detail)
}

/** Ids begin with the moment that they were made at, so the newest tell whether the clock has been set back. */
async function againstRows(database: OpenDatabase): Promise<Finding> {
  const { rows } = await sql<{ at: number | null }>`
    select max(at) as at from (
      select max(received_at) as at from inbound_events
      union all select max(created_at) from sales
      union all select max(created_at) from ledger_entries) as newest`.execute(database.reader)
  const ahead = (rows[0]?.at ?? 0) - Date.now()
  if (ahead <= MOST_MS) return ok('clock', `${new Date().toISOString()}, and no row is dated after it`)
  const detail = `the newest row is dated ${Math.round(ahead / 1000)} s in the future: the clock was ahead, or is behind now`
  return fail('clock', detail, MEND)
}
