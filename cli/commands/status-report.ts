import { statSync } from 'node:fs'
import { sql } from 'kysely'
import type { App } from '../../server/app.ts'
import { notificationBacklog } from '../../server/jobs/notification-backlog.ts'
import { failureOf, lastRuns, type ScheduleRunRow } from '../../server/jobs/schedule-runs.service.ts'
import { type Config, SettingError } from '../../server/platform/config.ts'
import { readKeyMark } from '../../server/platform/crypto/key-mark.ts'
import { withStatementTimeout } from '../../server/platform/database/database.ts'
import {
  damageProblem,
  examinePooler,
  standbyProblem,
} from '../../server/platform/database/database-health.ts'
import { type DatabaseProblem, databaseProblem } from '../../server/platform/database/database-problems.ts'
import { type MigrationState, migrationState } from '../../server/platform/database/migration-state.ts'
import { checkHosts } from '../../server/platform/database/open-database.ts'
import { printable } from '../../server/platform/printable.ts'
import { operatorStatus, STATUS_HOURS, wireSum } from '../../server/reports/operator-status.service.ts'
import { CURRENCY } from '../../shared/money.ts'
import { type AppContext, databasePlace } from '../context.ts'
import { examineDisk } from '../doctor/machine.ts'
import { Failure } from '../failures.ts'
import {
  displayMoney,
  durationText,
  fieldsText,
  formatMoney,
  many,
  type Output,
  sparkline,
  sum,
  sumText,
  wireTime,
} from '../terminal/output.ts'

type Status = Awaited<ReturnType<typeof readRows>>

/** With `service`, the settings of the service, it also reads every page of an SQLite file, and asks each host and the pooler. */
export async function readStatus(context: AppContext, service: Config | null = null): Promise<Status> {
  const state = await migrationState(context.app.database)
  const problems = await databaseProblems(context.app, state, service)
  const [problem] = problems
  if (!problem) return readRows(context, state, problems)
  // What cannot be read, because of locks that hanging writes hold, must not hide the reason.
  return withStatementTimeout(() => readRows(context, state, problems)).catch((error: Error) => {
    throw new Failure(`${problem.says} ${problem.remedy} (${error.message})`, { code: 'unavailable' })
  })
}

async function readRows(
  { app, config }: AppContext,
  { executed, pending }: MigrationState,
  problems: DatabaseProblem[],
) {
  const { platform, database } = app
  const runs = new Map((await lastRuns(platform)).map((run) => [run.name, run]))
  const expressions = new Map(
    Object.entries(config).flatMap(([name, value]) =>
      name.startsWith('SCHEDULE_') ? [[name.slice('SCHEDULE_'.length).toLowerCase(), String(value)]] : [],
    ),
  )
  const names = [...new Set([...expressions.keys(), ...runs.keys()])].sort()
  const at = platform.clock.now()
  return {
    /** Epoch ms. */
    at,
    market: await operatorStatus(platform),
    notifications: await notificationBacklog(platform.database.reader, at),
    schedule: names.map((name) => ({
      name,
      expression: expressions.get(name) ?? '',
      run: runs.get(name) ?? null,
    })),
    database: {
      place: databasePlace(config),
      dialect: database.dialect,
      bytes: await databaseBytes(app),
      executed: executed.length,
      pending,
      problems,
    },
    unpaidAfterDays: config.FLAG_CYCLE_UNPAID_DAYS,
    /** Why `affiliate keys rotate` is to be run; `null` when it is not. */
    rotateKeys:
      (await readKeyMark(platform.database.reader, platform.vault)) === 'former' ? 'former_key' : null,
  }
}

async function databaseProblems(
  { database, platform }: App,
  { unknown }: MigrationState,
  service: Config | null,
): Promise<DatabaseProblem[]> {
  const newer = {
    says: `The database belongs to a newer version: this one does not know ${unknown.join(', ')}.`,
    remedy: 'Install that version again.',
  }
  const disks = await examineDisk(platform.config)
  const pooler = service?.DATABASE_DIRECT_URL === undefined ? null : await examinePooler(service.DATABASE_URL)
  return [
    ...(unknown.length === 0 ? [] : [newer]),
    service ? await hostsProblem(service.DATABASE_URL) : null,
    await standbyProblem(database),
    service ? await damageProblem(database) : null,
    pooler,
    ...disks.map(({ state, detail, mend }) =>
      state === 'fail' ? { says: `${detail}.`, remedy: mend ?? '' } : null,
    ),
  ].filter((problem) => problem !== null)
}

/** Hosts that are not one cluster with one primary. */
async function hostsProblem(url: string): Promise<DatabaseProblem | null> {
  try {
    await checkHosts('DATABASE_URL', url)
    return null
  } catch (error) {
    if (!(error instanceof SettingError)) return databaseProblem(error)
    return { says: `${error.message}.`, remedy: 'Until then nothing can be written.' }
  }
}

async function databaseBytes({ database }: App): Promise<number> {
  if (database.dialect === 'sqlite') {
    // What was written last lies in the second file until it is moved over.
    const files = [database.file, `${database.file}-wal`]
    return sum(files.map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0))
  }
  const { rows } = await sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`.execute(
    database.reader,
  )
  return rows[0]?.bytes ?? 0
}

const LATE_MS = 60_000

export function statusLines(out: Output, status: Status): string[] {
  const { at, market, database, schedule } = status
  const { cycles, payouts, released, flags } = market
  const chart = (hours: readonly number[], text: string) =>
    `${sparkline(hours)}  ${whole(sum(hours))} ${text}`
  /** Stands out when the oldest has waited for too long. */
  const aged = (text: string, age: number) => (age > LATE_MS ? out.style('yellow', text) : text)
  const ageOf = (oldest: number | null) => (oldest === null ? 0 : at - oldest)
  const inbox = market.inbox.map(({ source, waiting, oldest }) => {
    const rest = oldest === null ? '' : `, the oldest for ${durationText(ageOf(oldest))}`
    return aged(`${source} ${whole(waiting)} waiting${rest}`, ageOf(oldest))
  })
  const setAside = `${whole(market.setAside)} set aside in ${STATUS_HOURS} h`
  const calls = market.attempts.map(({ kind, waiting, oldest }) => {
    const rest = `without an outcome, the oldest for ${durationText(ageOf(oldest))}`
    return aged(`${many(waiting, kind)} ${rest}`, ageOf(oldest))
  })
  const notices = status.notifications.map(({ kind, waiting, overdueMs }) => {
    const rest = overdueMs > LATE_MS ? `, due for ${durationText(overdueMs)}` : ''
    return aged(`${many(waiting, kind)} waiting${rest}`, overdueMs)
  })
  const late = `${whole(cycles.late.count)} past the end of their period`
  const overdue = `${sumText(cycles.unpaid)} for over ${status.unpaidAfterDays} days`
  const high = `${whole(flags.high)} high`
  return [
    `${out.heading('Affiliate marketplace')}  ${out.style('dim', out.time(at))}`,
    '',
    ...out.pairs([
      ['Inbox', [...inbox, market.setAside > 0 ? out.style('red', setAside) : setAside].join(' · ')],
      ['Clicks', chart(market.clicksByHour, `in ${STATUS_HOURS} h`)],
      ['Sales', chart(market.acceptedByHour, `accepted, commission ${displayMoney(market.commission)}`)],
      ['', chart(market.rejectedByHour, 'rejected')],
      [
        'Cycles',
        `${sumText(cycles.open)} open${cycles.late.count === 0 ? '' : `, ${out.style('yellow', late)}`}`,
      ],
      [
        '',
        `${sumText(cycles.closed)} closed, not paid yet${cycles.unpaid.count === 0 ? '' : `, ${out.style('red', overdue)}`}`,
      ],
      ['Payouts', `${sumText(payouts.pending)} to be sent, ${sumText(payouts.submitted)} at the processor`],
      ['', `${displayMoney(released.amount)} released to ${many(released.count, 'creator')}, in no payout`],
      ['Calls', calls.join(' · ') || 'none waits for its outcome'],
      [
        'Flags',
        `${flags.high > 0 ? out.style('red', high) : high} · ${whole(flags.medium)} medium · ${whole(flags.low)} low`,
      ],
      ['Notices', notices.join(' · ')],
      ...schedule.map(({ name, expression, run }, index) => {
        const when = expression === 'off' ? 'off' : runText(out, run)
        return [index === 0 ? 'Schedule' : '', `${name}: ${when}`] as const
      }),
      ['Database', databaseText(out, status)],
      ...database.problems.map(({ says, remedy }) => ['', out.style('red', `${says} ${remedy}`)] as const),
      status.rotateKeys !== null && [
        'Keys',
        out.style('yellow', 'secrets are sealed with a former key: affiliate keys rotate'),
      ],
    ]),
  ]
}

function runText(out: Output, run: ScheduleRunRow | null): string {
  if (run === null) return 'never run so far'
  const failure = failureOf(run)
  if (failure !== null)
    return `failed ${out.shortTime(run.started_at)} and is repeated: ${printable(failure)}`
  if (run.finished_at === null) return `began ${out.shortTime(run.started_at)}, and has not finished`
  const what = outcomeText(JSON.parse(run.outcome ?? '{}') as Record<string, unknown>)
  return `${out.shortTime(run.started_at)}, ${durationText(run.finished_at - run.started_at)}${what === '' ? '' : `: ${what}`}`
}

function outcomeText(outcome: Record<string, unknown>): string {
  const { compared, differing, unanswered, complete } = outcome
  if (compared !== undefined) {
    const found = differing === 0 ? 'no differences' : `${differing} differ`
    const open = unanswered === 0 ? '' : `, ${unanswered} unanswered`
    return `${compared} compared, ${found}${open}${complete === false ? ', not complete' : ''}`
  }
  // A digest is wider than the screen; "ledger verify --all" shows the last one.
  const shown = Object.entries(outcome).filter(([name, value]) => value !== null && name !== 'digest')
  return fieldsText(Object.fromEntries(shown))
}

function databaseText(out: Output, { database }: Status): string {
  const { dialect, bytes, executed, pending, place } = database
  const state =
    pending.length === 0
      ? `${executed} migrations, none pending`
      : out.style('red', `${pending.length} migrations pending: affiliate db migrate`)
  return `${dialect}, ${(bytes / 1_000_000).toFixed(1)} MB, ${state}, ${place}`
}

function whole(count: number): string {
  return count.toLocaleString('en')
}

export function wireStatus(status: Status) {
  const { at, market, notifications, schedule, database } = status
  return {
    at: wireTime(at),
    rotate_keys: status.rotateKeys,
    inbox: market.inbox.map(({ source, waiting, oldest }) => ({ source, waiting, oldest: wireTime(oldest) })),
    set_aside: market.setAside,
    notifications: notifications.map(({ kind, waiting, overdueMs }) => ({
      kind,
      waiting,
      overdue_seconds: Math.round(overdueMs / 1000),
    })),
    last_24_hours: {
      from: wireTime(market.from),
      clicks: market.clicksByHour,
      sales_accepted: market.acceptedByHour,
      sales_rejected: market.rejectedByHour,
      commission: formatMoney(market.commission),
    },
    billing_cycles: {
      open: wireSum(market.cycles.open),
      past_their_period: wireSum(market.cycles.late),
      closed: wireSum(market.cycles.closed),
      overdue: { after_days: status.unpaidAfterDays, ...wireSum(market.cycles.unpaid) },
    },
    payouts: {
      pending: wireSum(market.payouts.pending),
      submitted: wireSum(market.payouts.submitted),
      released: { creators: market.released.count, amount: formatMoney(market.released.amount) },
    },
    calls: market.attempts.map(({ kind, waiting, oldest }) => ({ kind, waiting, oldest: wireTime(oldest) })),
    flags: market.flags,
    schedule: schedule.map(({ name, expression, run }) => ({
      name,
      expression,
      started_at: wireTime(run?.started_at ?? null),
      finished_at: wireTime(run?.finished_at ?? null),
      outcome: run?.outcome ? (JSON.parse(run.outcome) as unknown) : null,
    })),
    database: {
      ...database,
      problems: database.problems.map(({ says, remedy }) => ({ problem: says, remedy })),
    },
    currency: CURRENCY,
  }
}
