import { existsSync, readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { sql } from 'kysely'
import {
  type Config,
  dataFolder,
  SETTING_NAMES,
  SettingError,
  sqliteFileOf,
} from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { nearestWord } from '../../server/platform/nearest-word.ts'
import { MAX_SKEW_MS, skewOf, skewText } from '../../server/processes/clock-skew.rule.ts'
import { readSettings } from '../../server/read-settings.ts'
import { SETTINGS_FILES } from '../settings-files.ts'
import { about, type Finding, type Found, privacyOf, wordsOf } from './finding.ts'

const runtime = about('runtime')
const settings = about('settings')
const disk = about('disk')
const clock = about('clock')

const LEAST = [22, 19] as const

export function examineRuntime(version: string = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const detail = `Node.js ${version} on ${process.platform} ${process.arch}`
  if (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1])) return runtime.ok(detail)
  return runtime.fail(detail, `Install Node.js ${LEAST.join('.')} or newer.`)
}

export function examineSettings(environment: NodeJS.ProcessEnv): Found {
  return [readable(environment), examineFiles()]
}

function readable(environment: NodeJS.ProcessEnv): Found {
  try {
    const { NODE_ENV, ROLES, PROCESSOR } = readSettings(environment)
    return settings.ok(`${NODE_ENV}, roles ${ROLES.join(', ')}, processor ${PROCESSOR}`)
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    const mend = `Correct it in the environment or in ${SETTINGS_FILES.join(' or ')}; server/guides/settings.md lists all settings.`
    return error.faults.map(({ name, problem }) => settings.fail(`setting ${name}: ${problem}`, mend))
  }
}

/** In these files there are our settings only, so a name that is none of them is a slip of the pen. */
function examineFiles(): Found {
  const files = SETTINGS_FILES.filter((file) => existsSync(file))
  if (files.length === 0)
    return settings.info('no settings file in this folder: settings come from the environment')
  return files.map((file) => [unknownNames(file), privacyOf('settings', file)])
}

function unknownNames(file: string): Found {
  return Object.keys(parseEnv(readFileSync(file, 'utf8'))).map((name) => {
    const nearest = SETTING_NAMES.includes(name) ? null : nearestWord(name, SETTING_NAMES)
    if (nearest === null) return null
    return settings.warn(`${file} sets ${name}, which nothing reads`, `Did you mean ${nearest}?`)
  })
}

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
    return disk.warn(`${folder}: ${wordsOf(error)}`, 'It is made when the service starts first.')
  }
}

export function judgeSpace(folder: string, free: number): Finding {
  const detail = `${(free / 1e9).toFixed(1)} GB free for ${folder}`
  if (free < TOO_LITTLE)
    return disk.fail(detail, 'Free space now: a full disk refuses every webhook and click.')
  if (free < LITTLE) return disk.warn(detail, 'Free some space, or move the data to a larger disk.')
  return disk.ok(detail)
}

/** Signed webhooks are refused from five minutes on; long before that, orders and clicks are misjudged. */
const MOST_MS = 30_000
const KEEP_TIME = 'Let the machine keep its time by NTP (timedatectl set-ntp true).'

export async function examineClock(database: OpenDatabase | null): Promise<Found> {
  if (!database) return clock.info(new Date().toISOString())
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
  return Math.abs(skew) > MAX_SKEW_MS ? clock.fail(skewText(skew), KEEP_TIME) : clock.ok(skewText(skew))
}

/** Ids begin with the moment that they were made at, so the newest tell whether the clock has been set back. */
async function againstRows(database: OpenDatabase): Promise<Finding> {
  const { rows } = await sql<{ at: number | null }>`
    select max(at) as at from (
      select max(received_at) as at from inbound_events
      union all select max(created_at) from sales
      union all select max(created_at) from ledger_entries) as newest`.execute(database.reader)
  const ahead = (rows[0]?.at ?? 0) - Date.now()
  if (ahead <= MOST_MS) return clock.ok(`${new Date().toISOString()}, and no row is dated after it`)
  const detail = `the newest row is dated ${Math.round(ahead / 1000)} s in the future: the clock was ahead, or is behind now`
  return clock.fail(detail, KEEP_TIME)
}
