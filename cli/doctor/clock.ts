import { sql } from 'kysely'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { MAX_SKEW_MS, skewOf, skewText } from '../../server/processes/clock-skew.rule.ts'
import { type Finding, fail, info, ok } from './finding.ts'

/** Signed webhooks are refused from five minutes on; long before that, orders and clicks are misjudged. */
const MOST_MS = 30_000
const MEND = 'Let the machine keep its time by NTP (timedatectl set-ntp true).'

export async function examineClock(database: OpenDatabase | null): Promise<Finding[]> {
  if (!database) return [info('clock', new Date().toISOString())]
  const findings = [await againstRows(database)]
  if (database.dialect === 'postgresql') findings.push(await againstServer(database))
  return findings
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
