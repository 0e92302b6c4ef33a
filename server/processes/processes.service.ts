import { hostname } from 'node:os'
import { type RawBuilder, type Selectable, sql } from 'kysely'
import { formatMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { type Config, SettingError } from '../platform/config.ts'
import {
  advisoryLock,
  dialectOf,
  type Queries,
  type Tx,
  withStatementTimeout,
} from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import type { Platform } from '../platform/platform.ts'
import { MAX_SKEW_AT_START_MS, skewOf, skewText } from './clock-skew.rule.ts'

const HEARTBEAT_EVERY_MS = 5000
/** While writes fail, so that their end is noticed soon. */
const RETRY_EVERY_MS = 1000
/** A process without a heartbeat for this long is gone. */
const LIVE_MS = 30_000
/** The settings that the last process started with, or the last command that moves money. */
const SETTINGS = 'money settings'
/** Held while a process joins or settings are compared, so that two do not start with different ones. */
const LOCK = 'processes'

const MONEY_SETTINGS = [
  'PLATFORM_FEE_RATE',
  'PAYOUT_THRESHOLD',
  'BILLING_PERIOD',
  'BILLING_TIMEZONE',
] as const
type MoneySettings = Record<string, unknown>

type ProcessRow = Selectable<Schema['processes']>

export type Presence = Awaited<ReturnType<typeof joinProcesses>>

/**
 * Enters this process among the running ones and keeps its heartbeat. Refuses to start with a clock that is far off, and with
 * `SettingError` when a running process has other money settings. A change of them with no other process running is audited.
 */
export async function joinProcesses(platform: Platform) {
  const { database, config, log } = platform
  let skew = await refuseWrongClock(platform)
  const own = {
    id: platform.ids.next(),
    host: hostname(),
    pid: process.pid,
    roles: config.ROLES.join(','),
    money_settings: JSON.stringify(moneySettings(config)),
  }
  await database.transaction(async (tx) => {
    await advisoryLock(tx, LOCK)
    await tx.deleteFrom('processes').where('seen_at', '<', liveSince(tx)).execute()
    await refuseOtherMoneySettings(tx, config)
    await auditChange(platform, tx)
    await upsertProcess(tx, own)
  })
  let failures: unknown[] = []
  let stopped = false
  let timer: NodeJS.Timeout
  let beating = Promise.resolve()
  const beat = async () => {
    try {
      await withStatementTimeout(() => database.transaction((tx) => upsertProcess(tx, own)))
      failures = []
      skew = await measureSkew(platform)
    } catch (error) {
      failures = [...failures.slice(-1), error]
      log.debug({ err: error }, 'no heartbeat')
    }
    if (!stopped) schedule()
  }
  const schedule = () => {
    const start = () => {
      beating = beat()
    }
    timer = setTimeout(start, failures.length === 0 ? HEARTBEAT_EVERY_MS : RETRY_EVERY_MS).unref()
  }
  schedule()
  return {
    /** How far this process's clock is ahead of the database's, ms, as last measured; 0 on SQLite. */
    clockSkew: () => skew,
    /** The error of the last heartbeat, which is a write, once two in a row have failed; otherwise `null`. */
    writeFailure: () => failures[1] ?? null,
    async stop() {
      stopped = true
      clearTimeout(timer)
      await beating
      // Without a database the row goes when it is old.
      await database
        .transaction((tx) => tx.deleteFrom('processes').where('id', '=', own.id).execute())
        .catch(() => {})
    },
  }
}

/** Audits money settings that have changed since the last start, for a command that moved money. */
export function auditMoneySettings(platform: Platform): Promise<void> {
  return platform.database.transaction(async (tx) => {
    await advisoryLock(tx, LOCK)
    await auditChange(platform, tx)
  })
}

/** Throws `SettingError` for the first money setting that a running process has otherwise. For commands that move money, too. */
export async function refuseOtherMoneySettings(db: Queries | Tx, config: Config): Promise<void> {
  const own = moneySettings(config)
  for (const other of await liveProcesses(db)) {
    const theirs = JSON.parse(other.money_settings) as MoneySettings
    const name = Object.keys(own).find((setting) => own[setting] !== theirs[setting])
    if (name === undefined) continue
    throw new SettingError(name, differs(asSet(name, own[name]), asSet(name, theirs[name]), other))
  }
}

/** The hosts with a running process that writes or serves export files. */
export async function liveHosts(db: Queries): Promise<string[]> {
  const processes = await liveProcesses(db)
  return [...new Set(processes.filter(({ roles }) => /web|worker/.test(roles)).map(({ host }) => host))]
}

/** A value as it stands in the environment: rupees and percent. */
function asSet(name: string, value: unknown): string {
  if (name === 'PAYOUT_THRESHOLD') return formatMoney(Number(value))
  if (name === 'PLATFORM_FEE_RATE') return String(basisPointsToPercent(Number(value)))
  return String(value)
}

function differs(own: string, theirs: string, { pid, host, roles }: ProcessRow): string {
  return `is ${own} here and ${theirs} in process ${pid} on ${host} (${roles}). Use the same value, or stop that process first; one that crashed counts for ${LIVE_MS / 1000} seconds`
}

function moneySettings(config: Config): MoneySettings {
  return Object.fromEntries(MONEY_SETTINGS.map((name) => [name, config[name]]))
}

async function auditChange(platform: Platform, tx: Tx): Promise<void> {
  const after = moneySettings(platform.config)
  const former = await readWatermark(tx, SETTINGS)
  const now = JSON.stringify(after)
  if (former === now) return
  await setWatermark(tx, SETTINGS, now)
  if (former === undefined) return
  await recordAudit(platform, tx, {
    actor: OPERATOR,
    action: 'settings.change',
    subjectType: 'settings',
    subjectId: 'money',
    before: JSON.parse(former),
    after,
  })
}

async function refuseWrongClock(platform: Platform): Promise<number> {
  const skew = await measureSkew(platform)
  if (Math.abs(skew) <= MAX_SKEW_AT_START_MS) return skew
  throw new Refusal(
    'unavailable',
    `This machine's clock is ${skewText(skew)}. Let it keep its time by NTP (timedatectl set-ntp true), then start again.`,
  )
}

/** SQLite has this machine's own clock. */
async function measureSkew({ database, clock }: Platform): Promise<number> {
  if (database.dialect === 'sqlite') return 0
  const before = clock.now()
  const { rows } = await sql<{ at: number }>`select ${databaseTime(database.reader)} as at`.execute(
    database.reader,
  )
  return skewOf({ before, database: rows[0]?.at ?? 0, after: clock.now() })
}

/** The database's own time, epoch ms, even within a transaction. */
function databaseTime(db: Queries): RawBuilder<number> {
  return dialectOf(db) === 'postgresql'
    ? sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
    : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
}

function liveSince(db: Queries): RawBuilder<number> {
  return sql<number>`${databaseTime(db)} - ${sql.lit(LIVE_MS)}`
}

function liveProcesses(db: Queries): Promise<ProcessRow[]> {
  return db.selectFrom('processes').selectAll().where('seen_at', '>=', liveSince(db)).orderBy('id').execute()
}

/** Adds the process, or renews its heartbeat. */
async function upsertProcess(tx: Tx, row: Omit<ProcessRow, 'seen_at'>): Promise<void> {
  const seen = { seen_at: databaseTime(tx) }
  await tx
    .insertInto('processes')
    .values({ ...row, ...seen })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(seen))
    .execute()
}
