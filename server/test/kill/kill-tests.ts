import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { TestDialect } from '../testkit/databases.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { seededRandom, testSeed } from '../testkit/seeded-random.ts'
import { dieAt, dieAtRandom, planRounds, playRounds, targetsOn } from './kill.ts'
import { describe, type Stage } from './points.ts'
import type { World } from './world.ts'

const USUAL_SEED = 20_261_122

/** 0: one kill in each stage of a single round. */
const KILLS_PER_POINT = proofCount('KILLS_PER_POINT', 0)
const RANDOM_KILLS = proofCount('RANDOM_KILLS', 0)

export function addKillTests(it: Test, dialect: TestDialect): void {
  it(`keeps what it acknowledged and doubles nothing, wherever it dies on ${dialect}`, async () => {
    const targets = targetsOn(dialect, KILLS_PER_POINT > 1)
    const allPlans = planRounds(targets, Math.max(1, KILLS_PER_POINT))
    const plans = KILLS_PER_POINT > 0 ? allPlans : [examplePlan(allPlans[0] ?? {}, dialect)]
    const conducts = plans.map((plan) => (world: World) => dieAt(world, plan))
    const report = progress(`kill points on ${dialect}`, targets.length * KILLS_PER_POINT)
    const { deaths, rounds } = await playRounds(dialect, conducts, report)
    const ordered = plans.reduce((sum, plan) => sum + Object.keys(plan).length, 0)
    if (KILLS_PER_POINT > 0) assert.is(ordered, targets.length * KILLS_PER_POINT)
    // One that is to die at its start is killed first.
    const atStart = plans.filter((plan) => plan.start).length
    assert.is(deaths, ordered + atStart, targets.map(describe).join('\n'))
    console.log(
      `\nsize: kills on ${dialect}: ${ordered} deaths, ${targets.length} named points, ${rounds} rounds`,
    )
  })

  if (RANDOM_KILLS > 0)
    it(`the same at ${RANDOM_KILLS} random moments on ${dialect}`, async () => {
      const seed = testSeed(USUAL_SEED)
      const random = seededRandom(seed)
      const report = progress(`random kills on ${dialect}`, RANDOM_KILLS)
      let deaths = 0
      function* untilEnough() {
        while (deaths < RANDOM_KILLS) yield (world: World) => dieAtRandom(world, random)
      }
      await playRounds(dialect, untilEnough(), (rounds, soFar) => {
        deaths = soFar
        report(rounds, soFar)
      })
      console.log(`\nsize: kills on ${dialect}: ${deaths} deaths at random moments, TEST_SEED=${seed}`)
    })
}

/** Up to three kills in one round, in other stages on each database. */
function examplePlan<T>(plan: Partial<Record<Stage, T>>, dialect: TestDialect): Partial<Record<Stage, T>> {
  const stages: Stage[] = dialect === 'sqlite' ? ['clicks', 'late', 'billing'] : ['orders', 'late', 'payouts']
  return Object.fromEntries(stages.flatMap((stage) => (plan[stage] ? [[stage, plan[stage]]] : [])))
}

/** A line every hundred deaths: the long form takes an hour. */
function progress(what: string, of: number): (rounds: number, deaths: number) => void {
  let next = 100
  return (rounds, deaths) => {
    if (deaths < next) return
    next += 100
    console.log(`\nprogress: ${what}: ${deaths} of ${of}, ${rounds} rounds`)
  }
}
