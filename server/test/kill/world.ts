import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { Platform } from '../../platform/platform.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../processor/sandbox/start-sandbox.ts'
import { openTestDatabase, type TestDatabase, type TestDialect } from '../testkit/databases.ts'
import { verify } from '../testkit/marketplace.ts'
import { pluck } from '../testkit/pluck.ts'
import { columnsOf, rowsOf } from '../testkit/rows.ts'
import { type Answer, call } from '../testkit/service-bed.ts'
import { lookInto } from '../testkit/testbed.ts'
import { openWebhookReceiver, type WebhookReceiver } from '../testkit/webhook-receiver.ts'
import type { ScheduledJob } from './kill-at.ts'
import { KillableServer, killableEnvironment } from './killable-server.ts'
import { type Mails, openMails } from './mails.ts'

/** A restart takes longer than any lease of the dead server. */
const DOWN_MS = 30_000
/** Nothing has moved for so long that what waits, waits for the clock. */
const QUIET_MS = 250
const NEXT_RUN_MS = 1000
/** SQLite's file is opened for each look. */
const POLL_MS = 50
const STUCK_MS = 300_000
const MOST_TRIES = 10
const WORLD_SETTINGS = {
  PORT: '0',
  DRAIN_SECONDS: '0',
  PROCESSOR_TIMEOUT_MS: '5000',
  BILLING_PERIOD: 'daily',
  PAYOUT_THRESHOLD: '1.00',
  LOG_LEVEL: 'silent',
}

const API_KEY = 'key-of-the-processor'
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

/** A processor in the process of the proof, which outlives the server, and the settings of a server that uses it. */
export async function openOutsideProcessor({
  webhookUrl,
  now,
}: Required<Pick<SandboxOptions, 'webhookUrl' | 'now'>>) {
  const sandbox = await startSandbox({
    databasePath: ':memory:',
    host: '127.0.0.1',
    port: 0,
    apiKey: API_KEY,
    webhookSecret: WEBHOOK_SECRET,
    webhookUrl,
    now,
    random: () => 0.5,
    retryBaseMs: 20,
  })
  const settings = {
    PROCESSOR: 'http',
    PROCESSOR_URL: sandbox.url,
    PROCESSOR_API_KEY: API_KEY,
    PROCESSOR_WEBHOOK_SECRETS: WEBHOOK_SECRET,
  }
  return { sandbox, settings }
}

/**
 * The outside world of one server: the store that sends again what was not answered, the processor in the process of the
 * proof, the restarts of the server, and the clock.
 */
export class World {
  readonly server: KillableServer
  readonly processor: Sandbox
  /** The own system of all merchants and creators. */
  readonly receiver: WebhookReceiver
  readonly mails: Mails
  /** What the server has answered 302 or 200: it must be on disk. */
  readonly acknowledged = { clicks: new Set<string>(), deliveries: new Set<string>() }
  readonly #testDatabase: TestDatabase
  #ahead = 0
  /** The latest start whose own runs are known to be over. */
  #settledStart = Number.NaN
  #isClosed = false

  /** `settingsFor` is given the database's address, and may put another one in its place. */
  static async open(
    dialect: TestDialect,
    settingsFor: (databaseUrl: string) => Promise<Record<string, string>> = async () => ({}),
  ): Promise<World> {
    const testDatabase = await openTestDatabase(dialect)
    const given = await settingsFor(testDatabase.url)
    // Opens the file for each look: a connection that stays open would keep SQLite from recovering it after a death.
    if (dialect === 'sqlite') await testDatabase.database.close()
    let world: World | undefined
    const { sandbox, settings } = await openOutsideProcessor({
      webhookUrl: () => (world?.server.url ? `${world.server.url}/webhooks/processor` : null),
      now: () => world?.now() ?? Date.now(),
    })
    const mails = await openMails(() => world?.server.deaths ?? 0)
    const outside = { testDatabase, sandbox, receiver: await openWebhookReceiver(), mails }
    world = new World(outside, { ...settings, ...mails.settings, ...given })
    return world
  }

  private constructor(
    outside: { testDatabase: TestDatabase; sandbox: Sandbox; receiver: WebhookReceiver; mails: Mails },
    settings: Record<string, string>,
  ) {
    const { testDatabase } = outside
    this.#testDatabase = testDatabase
    this.processor = outside.sandbox
    this.receiver = outside.receiver
    this.mails = outside.mails
    this.server = new KillableServer({
      environment: { ...killableEnvironment(testDatabase), ...WORLD_SETTINGS, ...settings },
      clockAhead: () => this.#ahead,
      onDeath: async () => {
        await this.verify()
        this.#ahead += DOWN_MS
      },
    })
  }

  get databaseUrl(): string {
    return this.#testDatabase.url
  }

  now(): number {
    return Date.now() + this.#ahead
  }

  /** Looks into the database, or prepares something in it, beside the server. */
  look<T>(work: (platform: Platform) => Promise<T>): Promise<T> {
    return lookInto(this.#testDatabase, { now: () => this.now() }, work)
  }

  /** Like `look`, for what writes: from the start when the server keeps the database to itself for too long. */
  async prepare<T>(work: (platform: Platform) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.look(work)
      } catch (error) {
        if (tries === MOST_TRIES || !String(error).includes('the database is busy')) throw error
      }
    }
  }

  /** The server's address; one that is dead is started first, as often as it takes. */
  async up(): Promise<string> {
    for (;;) {
      // A visitor may still try again when another one's failure has ended the round.
      if (this.#isClosed) throw new Error('the world is closed')
      const url = await this.server.alive().catch((error: Error) => {
        if (!error.message.includes('before it listened')) throw error
        return null
      })
      if (url !== null) return url
    }
  }

  /** Sends again until it is answered with `status`; a death and a 503 are reasons to, anything else is a failure. */
  async insist(
    status: number,
    request: { method: string; path: string; headers?: Record<string, string>; raw?: string },
  ): Promise<Answer> {
    for (;;) {
      const url = await this.up()
      const answer = await call(url, request.method, request.path, request).catch(() => null)
      if (answer?.status === status) return answer
      if (answer && answer.status !== 503) {
        throw new Error(`${request.method} ${request.path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      await pause(20)
    }
  }

  async passTime(ms: number): Promise<void> {
    this.#ahead += ms
    if (this.server.isAlive) await this.server.obey({ kind: 'clock', ahead: this.#ahead })
    this.processor.wake()
  }

  /** Has a scheduled job run, whole: a run that is cut off is made again. */
  async runSchedule(job: ScheduledJob): Promise<void> {
    do await this.up()
    while (!(await this.server.obey({ kind: 'schedule', job })))
  }

  /**
   * Waits until the runs that every start makes are over, so that none of them comes upon what follows. Once a start: when a later run
   * is cut off from its database, its row stays open until cron's next time, which may be a day away.
   */
  async startIsOver(): Promise<void> {
    const isOver = () =>
      this.look(async ({ database }) => {
        const runs = await database.reader
          .selectFrom('schedule_runs')
          .select('name')
          .where('name', 'in', ['billing', 'payouts'])
          .where('started_at', '>=', this.server.startedAt)
          .where('finished_at', 'is not', null)
          .execute()
        return runs.length === 2
      })
    for (;;) {
      await this.up()
      const start = this.server.startedAt
      if (start === this.#settledStart) return
      if (await isOver()) {
        this.#settledStart = start
        return
      }
      await pause(POLL_MS)
    }
  }

  /** Waits until nothing waits and `isDone`; what waits for a time has it come, a scheduled job `again` its next run. */
  async settleDown(isDone: (platform: Platform) => Promise<boolean>, again?: ScheduledJob): Promise<void> {
    let before = ''
    let since = performance.now()
    let nextRun = 0
    for (;;) {
      await this.up()
      this.processor.wake()
      const {
        due,
        state: rows,
        done,
      } = await this.look(async (platform) => {
        const waiting = await whatWaits(platform)
        return { ...waiting, done: waiting.due === null && (await isDone(platform)) }
      })
      if (done) return
      const state = `after ${this.server.deaths} deaths: ${rows}`
      if (state !== before) since = performance.now()
      before = state
      const quiet = performance.now() - since
      if (quiet > STUCK_MS) throw new Error(`no progress: ${state}`)
      // A run that the database was taken away from is made again at its next time.
      if (again && quiet > NEXT_RUN_MS && due === null && performance.now() > nextRun) {
        await this.runSchedule(again)
        nextRun = performance.now() + NEXT_RUN_MS
      }
      if (quiet > QUIET_MS && due !== null && due > this.now()) await this.passTime(due - this.now() + 1)
      await pause(POLL_MS)
    }
  }

  async assertNoFlags(): Promise<void> {
    assert.equal(await this.look((platform) => rowsOf(platform, 'flags')), [], 'no flags are open')
  }

  /** The books hold, and everything that was acknowledged is on disk, once. */
  async verify(): Promise<void> {
    await this.look(async (platform) => {
      await verify(platform)
      const clicks = await columnsOf(platform, 'clicks', ['id'])
      const events = await columnsOf(platform, 'inbound_events', ['delivery_id'])
      const delivered = await columnsOf(platform, 'webhook_deliveries', ['event_id'], { state: 'delivered' })
      const sent = await columnsOf(platform, 'mails', ['id'], { state: 'sent' })
      const { acknowledged, receiver, mails } = this
      const lost = {
        'clicks that were answered 302': missing(acknowledged.clicks, pluck(clicks, 'id')),
        'events that were answered 200': missing(acknowledged.deliveries, pluck(events, 'delivery_id')),
        'webhooks noted as delivered': missing(pluck(delivered, 'event_id'), pluck(receiver.received, 'id')),
        'mails noted as sent': missing(pluck(sent, 'id'), pluck(mails.arrived(), 'id')),
      }
      for (const [what, ids] of Object.entries(lost)) assert.equal(ids, [], `lost: ${what}`)
    })
    const { invoices, payouts } = this.processor.state()
    const references = pluck([...invoices, ...payouts], 'reference')
    assert.is(new Set(references).size, references.length, 'the processor holds something twice')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.server.stop()
    await this.processor.close()
    this.receiver.close()
    await this.mails.close()
    await this.#testDatabase.close()
  }
}

/** What was acknowledged and is not stored. */
export function missing(acknowledged: Iterable<unknown>, stored: readonly unknown[]): unknown[] {
  const ids = new Set(stored)
  return [...acknowledged].filter((id) => !ids.has(id))
}

interface Waiting {
  id: string
  attempts: number
  at: number
  lease_until: number
}

/** What waits: the table, its counter of attempts, its next time, its lease, and the condition. */
const WAITING = [
  ['inbound_events', 'attempts', 'next_attempt_at', 'lease_until', "state = 'pending'"],
  ['processor_attempts', 'tries', 'next_try_at', 'lease_until', "state = 'waiting'"],
  ['outbox_events', 'sequence', 'created_at', 'created_at', 'distributed_at is null'],
  ['webhook_deliveries', 'attempts', 'due_at', 'lease_until', "state = 'pending'"],
  ['mails', 'attempts', 'next_try_at', 'lease_until', "state = 'queued'"],
] as const

/** When the last of what waits falls due, and all of it as one text. */
async function whatWaits({ database }: Platform): Promise<{ due: number | null; state: string }> {
  const all: Waiting[] = []
  for (const [table, attempts, at, lease, waits] of WAITING) {
    const { rows } = await sql<Waiting>`
      select id, ${sql.ref(attempts)} as attempts, ${sql.ref(at)} as at, ${sql.ref(lease)} as lease_until
      from ${sql.table(table)} where ${sql.raw(waits)} order by id`.execute(database.reader)
    all.push(...rows)
  }
  const due = all.length === 0 ? null : Math.max(...all.map((row) => Math.max(row.at, row.lease_until)))
  return { due, state: JSON.stringify(all) }
}
