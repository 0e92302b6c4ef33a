import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { systemClock } from '../../platform/clock.ts'
import { openDatabase } from '../../platform/database/open-database.ts'
import type { Platform } from '../../platform/platform.ts'
import { killableEnvironment } from '../kill/killable-server.ts'
import { setScene } from '../kill/round.ts'
import { missing, openOutsideProcessor } from '../kill/world.ts'
import { eventually } from '../testkit/eventually.ts'
import { verify } from '../testkit/marketplace.ts'
import { pluck } from '../testkit/pluck.ts'
import { columnsOf, rowsOf } from '../testkit/rows.ts'
import { registerMerchant } from '../testkit/service-bed.ts'
import { openTcpProxy, type TcpProxy } from '../testkit/tcp-proxy.ts'
import { lookInto, platformOver } from '../testkit/testbed.ts'
import { openDirect } from './front.ts'
import { Load } from './load.ts'
import { PostgresPair } from './postgres-pair.ts'
import { type Role, ServiceProcess } from './service-process.ts'

export const DRAIN_SECONDS = 1

/** Two servers of PostgreSQL, two processes of each role, and a load. */
export class FailoverWorld {
  readonly pair: PostgresPair
  readonly proxy: TcpProxy
  readonly processes: Record<Role, [ServiceProcess, ServiceProcess]>
  readonly load: Load
  readonly random: () => number
  readonly #storeId: string
  /** Closes what the processes use. */
  readonly #close: () => Promise<void>

  static async open(options: { rate: number; random: () => number }): Promise<FailoverWorld> {
    const pair = await PostgresPair.open()
    const proxy = await openTcpProxy({ host: '127.0.0.1', port: pair.primary.port })
    const folder = mkdtempSync(join(tmpdir(), 'affiliate-failover-'))
    const { sandbox, settings } = await openOutsideProcessor({ webhookUrl: () => null, now: Date.now })
    const close = async () => {
      await sandbox.close()
      await proxy.close()
      await pair.close()
      rmSync(folder, { recursive: true, force: true })
    }
    try {
      const scene = await prepare(pair.primary.url)
      const environment = (url: string) => ({
        ...killableEnvironment({ url, folder }),
        ...settings,
        DRAIN_SECONDS: String(DRAIN_SECONDS),
        LOG_LEVEL: 'warn',
      })
      const throughProxy = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`
      const { primary, standby } = pair
      const bothHosts = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres?target_session_attrs=read-write`
      const two = async (role: Role): Promise<[ServiceProcess, ServiceProcess]> => [
        await ServiceProcess.create(`${role} 1`, role, environment(bothHosts)),
        await ServiceProcess.create(`${role} 2`, role, environment(throughProxy)),
      ]
      const processes = {
        web: await two('web'),
        worker: await two('worker'),
        scheduler: await two('scheduler'),
      }
      await Promise.all(Object.values(processes).flatMap((both) => both.map((one) => one.alive())))
      const token = await registerMerchant(processes.web[0].url)
      const shop = { ...scene, slug: scene.links.ayesha.slug, token }
      const load = new Load(shop, openDirect(processes.web), options)
      return new FailoverWorld({ pair, proxy, processes, load, random: options.random }, scene.storeId, close)
    } catch (error) {
      await close()
      throw error
    }
  }

  private constructor(
    parts: Pick<FailoverWorld, 'pair' | 'proxy' | 'processes' | 'load' | 'random'>,
    storeId: string,
    close: () => Promise<void>,
  ) {
    this.pair = parts.pair
    this.proxy = parts.proxy
    this.processes = parts.processes
    this.load = parts.load
    this.random = parts.random
    this.#storeId = storeId
    this.#close = close
  }

  get all(): ServiceProcess[] {
    return Object.values(this.processes).flat()
  }

  /** Looks into the primary's database. */
  look<T>(work: (platform: Platform) => Promise<T>): Promise<T> {
    return lookInto(this.pair.primary, systemClock, work)
  }

  query<Row extends Record<string, unknown>>(sql: string): Promise<Row[]> {
    return this.pair.primary.query(sql)
  }

  /** Resolves once an order that is acknowledged from now on is a sale: web and worker work. */
  async untilOrderIsSold(): Promise<void> {
    const before = new Set(this.load.acknowledged.keys())
    await eventually(async () => {
      const fresh = [...this.load.acknowledged].find(([id]) => !before.has(id))
      return fresh && (await this.query(`select 1 from sales where order_id = '${fresh[1]}'`)).length > 0
    }).catch(async (error) => {
      await this.explain()
      throw error
    })
  }

  /** Resolves once each scheduler has run a job to its end. Throws when a run fails. */
  async runSchedules(): Promise<void> {
    for (const scheduler of this.processes.scheduler) {
      const from = Date.now()
      await scheduler.runSchedule('payouts')
      const [run] = await this.query<{
        started_at: string
        finished_at: string | null
        outcome: string | null
      }>("select started_at, finished_at, outcome from schedule_runs where name = 'payouts'")
      // Cron may have begun another run meanwhile.
      const isDone =
        Number(run?.finished_at ?? 0) >= from || (Number(run?.started_at) >= from && !run?.outcome)
      if (!isDone) throw new Error(`${scheduler.name}: ${run?.outcome}; ${scheduler.log.slice(-2000)}`)
    }
  }

  /** Prints what keeps events from being applied. */
  async explain(): Promise<void> {
    const rows = await this.query(
      "select id, attempts, lease_token, lease_until, next_attempt_at from inbound_events where state = 'pending' order by id limit 3",
    )
    console.log(JSON.stringify({ now: Date.now(), rows }))
    for (const worker of this.processes.worker) console.log(`${worker.name}: ${worker.log}`)
  }

  /** Every acknowledged webhook is one sale, every answered click is stored, nothing is doubled, and the books hold. */
  async settle(): Promise<{ sales: number; clicks: number }> {
    const { acknowledged, clicks } = this.load
    await eventually(
      () =>
        this.query<{ state: string; attempts: number }>(
          "select state, attempts from inbound_events where state = 'pending'",
        ),
      (rows) => rows.length === 0,
    )
    return this.look(async (platform) => {
      const sales = pluck(await rowsOf(platform, 'sales', { store_id: this.#storeId }), 'order_id')
      const events = pluck(await rowsOf(platform, 'inbound_events', { scope: this.#storeId }), 'delivery_id')
      const stored = pluck(await columnsOf(platform, 'clicks', ['id']), 'id')
      assert.equal(missing(acknowledged.values(), sales), [], 'acknowledged orders that are no sale')
      assert.equal(missing(acknowledged.keys(), events), [], 'acknowledged webhooks that are lost')
      assert.equal(missing(clicks, stored), [], 'answered clicks that are lost')
      for (const ids of [sales, events]) assert.is(new Set(ids).size, ids.length)
      // Every webhook was acknowledged in the end, so that there is no other sale.
      assert.is(sales.length, acknowledged.size)
      await verify(platform)
      return { sales: sales.length, clicks: clicks.size }
    })
  }

  async close(): Promise<void> {
    for (const one of this.all) await one.kill()
    await this.load.front.close()
    await this.#close()
  }
}

async function prepare(url: string) {
  const { migrate } = await import('../../migrator.ts')
  const database = await openDatabase(url, { create: true })
  try {
    await migrate(database)
    return await setScene(platformOver(database, url, systemClock))
  } finally {
    await database.close()
  }
}
