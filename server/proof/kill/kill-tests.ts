import type { Test } from 'uvu'
import * as assert from 'uvu/assert'
import type { TestDialect } from '../testbed/databases.ts'
import { dieAt, planRounds, playRounds, targetsOn } from './kill.ts'
import { killDrains } from './killed-drains.ts'
import { describe } from './points.ts'
import { dieAtRandom, seededRandom } from './random-kills.ts'
import type { World } from './world.ts'

const USUAL_SEED = 20_261_122

/**
 * `KILLS_PER_POINT` (1 unless given), `RANDOM_KILLS` (none unless given) and `TEST_SEED` make the short form the long one.
 */
const KILLS_PER_POINT = wholeNumber('KILLS_PER_POINT', 1)
const RANDOM_KILLS = wholeNumber('RANDOM_KILLS', 0)

export function addKillTests(it: Test, dialect: TestDialect): void {
  it(`keeps what it acknowledged and doubles nothing, wherever it dies on ${dialect}`, async () => {
    const targets = targetsOn(dialect, KILLS_PER_POINT > 1)
    const plans = planRounds(targets, KILLS_PER_POINT)
    // The first round is the one without a death, whose figures all the others must equal.
    const conducts = [{}, ...plans].map((plan) => (world: World) => dieAt(world, plan))
    const report = progress(`kill points on ${dialect}`, targets.length * KILLS_PER_POINT)
    const { deaths, rounds } = await playRounds(dialect, conducts, report)
    const ordered = plans.reduce((sum, plan) => sum + Object.keys(plan).length, 0)
    assert.is(ordered, targets.length * KILLS_PER_POINT)
    // One that is to die at its start is killed first.
    const atStart = plans.filter((plan) => plan.start).length
    assert.is(deaths, ordered + atStart, targets.map(describe).join('\n'))
    console.log(
      `\nsize: kills on ${dialect}: ${ordered} deaths at ${targets.length} named points, ${rounds} rounds`,
    )
  })

  it(`sells each order of a pile once, whoever dies while a thread reads it ahead on ${dialect}`, async () => {
    const seed = chosenSeed()
    const random = seededRandom(seed)
    const total = { piles: 0, deaths: 0, orders: 0, readAhead: 0 }
    for (; total.piles < KILLS_PER_POINT; total.piles += 1) {
      const { deaths, orders, readAhead } = await killDrains(dialect, random).catch((error: Error) => {
        error.message += `\npile ${total.piles}, TEST_SEED=${seed}`
        throw error
      })
      total.deaths += deaths
      total.orders += orders
      total.readAhead += readAhead
    }
    const { piles, deaths, orders, readAhead } = total
    console.log(
      `\nsize: killed drains on ${dialect}: ${deaths} deaths over ${piles} piles of ${orders} orders in all, ` +
        `${readAhead} taken as read ahead, TEST_SEED=${seed}`,
    )
  })

  if (RANDOM_KILLS > 0) {
    it(`the same at ${RANDOM_KILLS} random moments on ${dialect}`, async () => {
      const seed = chosenSeed()
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
      assert.ok(deaths >= RANDOM_KILLS)
      console.log(`\nsize: kills on ${dialect}: ${deaths} deaths at random moments, TEST_SEED=${seed}`)
    })
  }
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

function wholeNumber(name: string, usual: number): number {
  const given = process.env[name]
  const value = given === undefined ? usual : Number(given)
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${name} must be a whole number, not ${given}`)
  return value
}

function chosenSeed(): number {
  const given = process.env.TEST_SEED
  return given === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(given ?? USUAL_SEED)
}
