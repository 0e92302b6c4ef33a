// proof only
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres } from '../testkit/databases.ts'
import { pluck } from '../testkit/pluck.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { seededRandom, testSeed } from '../testkit/seeded-random.ts'
import { FailoverWorld } from './failover-world.ts'
import { openBalancer, openDirect } from './front.ts'
import { calmSecond } from './load.ts'
import { duringOutage, report, worst } from './outage.ts'

const SEED = testSeed(20_261_125)
/** Requests a second. */
const RATE = proofCount('FAILOVER_RATE', 60)
const ROUNDS = proofCount('FAILOVER_ROUNDS', 1)
/** How long a cluster takes to notice that its primary is gone, ms; also how long a freeze and a lost standby last. */
const OUTAGE_MS = proofCount('FAILOVER_OUTAGE', 2500)

const it = suite<{ world: FailoverWorld }>('a database that fails over, under load')
const random = seededRandom(SEED)

it.before(async (context) => {
  context.world = await FailoverWorld.open({ rate: RATE, random })
  console.log(
    `\nsize: failover: ${ROUNDS} rounds at ${RATE} requests/s, outages of ${OUTAGE_MS} ms, TEST_SEED=${SEED}`,
  )
  context.world.load.start()
  await calmSecond(context.world.load)
})

// What a test that failed left is put right, so that the next one can succeed.
it.before.each(({ world }) => world.pair.attachStandby())

it.after(async ({ world }) => {
  await world?.close()
})

for (let round = 1; round <= ROUNDS; round += 1) {
  const name = (text: string) => (ROUNDS === 1 ? text : `${text}, round ${round}`)

  for (const [change, end, noticedAfter] of [
    ['when the primary is killed', 'kill', OUTAGE_MS],
    ['at a planned switchover', 'fast', 0],
  ] as const)
    it(name(`loses nothing ${change} and the standby promoted`), async ({ world }) => {
      const { pair, proxy } = world
      await duringOutage(world, async (returned) => {
        await pair.primary.stop(end)
        proxy.follow(null)
        await pause(noticedAfter)
        await pair.failOver()
        proxy.follow(pair.primary.port)
        returned()
      })
    })

  it(name('answers while the primary is frozen, and goes on when it continues'), async ({ world }) => {
    await duringOutage(world, async (returned) => {
      world.pair.primary.freeze()
      await pause(OUTAGE_MS)
      world.pair.primary.thaw()
      returned()
    })
  })

  it(
    name('goes on to read while the standby is lost, and to write once nothing waits for it'),
    async ({ world }) => {
      const { pair } = world
      const samples = await duringOutage(world, async (returned) => {
        await pair.standby.stop('kill')
        await pause(OUTAGE_MS)
        await pair.primary.configure({ synchronous_standby_names: '' })
        returned()
      })
      const refused = pluck(
        samples.filter(({ status }) => status === 503),
        'kind',
      )
      assert.ok(refused.includes('webhook'), 'webhooks had to wait for the standby')
      assert.not.ok(refused.includes('list') || refused.includes('account'), 'a read was refused')
    },
  )

  it(name('fails no request at a rolling restart behind a load balancer'), async ({ world }) => {
    const { load, processes } = world
    await load.useFront(openBalancer(processes.web))
    // A start keeps a slow machine busy: a request that then waits for the processor says nothing about the restart.
    load.mostUnderWay = 4
    await calmSecond(load)
    const from = load.samples.length
    for (const web of processes.web) {
      await web.stop()
      await web.alive()
      await pause(500)
    }
    load.mostUnderWay = Number.POSITIVE_INFINITY
    await load.useFront(openDirect(processes.web))
    report('rolling restart', load.samples.slice(from), null)
  })

  it(name('runs on beside a database that a later version has migrated'), async ({ world }) => {
    const { load } = world
    const from = load.samples.length
    await migrateFurther(world, round)
    await pause(OUTAGE_MS)
    await world.untilOrderIsSold()
    for (const one of world.all) assert.ok(await one.isReady(), one.name)
    await world.runSchedules()
    report('a later version', load.samples.slice(from), null)
  })
}

it('has each acknowledged webhook as one sale and each answered click; books hold', async ({ world }) => {
  await world.load.stop()
  const { sales, clicks } = await world.settle()
  assert.ok(sales > 0 && clicks > 0)
  console.log(
    `\nsize: failover: ${world.load.samples.length} requests, ${sales} sales, ${clicks} clicks in the end; ` +
      `at most ${worst.answer} ms for an answer, and after a return ${worst.requestsBack} ms for requests, ${worst.workerBack} ms for a worker, ${worst.schedulersBack} ms for both schedulers`,
  )
  for (const one of world.all) assert.ok(one.isAlive, one.name)
})

/** As a later version migrates: columns that an older one does not know, and the name of the migration. */
async function migrateFurther(world: FailoverWorld, round: number): Promise<void> {
  const tables = ['inbound_events', 'clicks', 'sales', 'users', 'sessions', 'offers', 'billing_cycles']
  for (const table of tables) {
    await world.query(`alter table ${table} add column later_${round} text`)
  }
  await world.query(
    `insert into mikro_orm_migrations (name, executed_at) values ('9999${round}-later', now())`,
  )
}

if (process.platform === 'linux') onPostgres(it).run()
