import * as assert from 'uvu/assert'
import type { TestDialect } from '../testkit/databases.ts'
import { describe, type Moment, momentsOf, POINTS, type Point, type Stage, type Target } from './points.ts'
import { type Conduct, playRound } from './round.ts'
import { World } from './world.ts'

const REACHED_WITHIN_MS = 300_000
/** About as long as the longest stage takes without a death, ms. */
const LONGEST_STAGE_MS = 400
/** About as long as a start takes, ms. */
const BOOT_MS = 2000
/** How often a server that has just died is killed again while it comes up. */
const AGAIN = 0.25

/**
 * Every point, on one database: with all its moments when the proof is `thorough`, else with one, which is another one on each
 * database. Just before an answer that is promised by a commit they die on both.
 */
export function targetsOn(dialect: TestDialect, thorough: boolean): Target[] {
  return POINTS.flatMap((point, index) => {
    const moments = momentsOf(point, dialect, thorough)
    const turn = (index + (dialect === 'sqlite' ? 0 : 1)) % moments.length
    const isAsked = (moment: Moment, at: number) =>
      thorough || at === turn || (point.answered === true && moment === 'before')
    return moments.filter(isAsked).map((moment) => ({ point, moment }))
  })
}

/** Rounds that reach every target `times` times, at most one in each stage of a round. */
export function planRounds<T extends { point: Point }>(
  targets: readonly T[],
  times: number,
): Partial<Record<Stage, T>>[] {
  const all = Array.from({ length: times }, () => targets).flat()
  const stages = [...Map.groupBy(all, ({ point }) => point.stage)]
  const rounds = Math.max(...stages.map(([, list]) => list.length))
  return Array.from({ length: rounds }, (_, round) =>
    Object.fromEntries(stages.flatMap(([stage, list]) => (list[round] ? [[stage, list[round]]] : []))),
  )
}

/** Has the server die at the target of each stage; a target that is not reached is a failure. */
export function dieAt(world: World, plan: Partial<Record<Stage, Target>>): Conduct {
  return async (stage, work) => {
    const target = plan[stage]
    if (!target) return work()
    const { server } = world
    await world.up()
    if (stage === 'start') {
      await server.kill()
      await server.alive(target).catch(() => undefined)
    } else await server.obey({ kind: 'arm', target })
    const deaths = server.deaths
    await work().catch((error: Error) => {
      error.message = `${describe(target)}\n${error.message}`
      throw error
    })
    if (server.deaths === deaths) {
      assert.ok(await server.endsWithin(REACHED_WITHIN_MS), `never reached: ${describe(target)}`)
    }
    await world.up()
  }
}

/** Kills the server at some moment of each stage, and now and then once more while it comes up again. */
export function dieAtRandom(world: World, random: () => number): Conduct {
  return async (_stage, work) => {
    let timer: NodeJS.Timeout | undefined
    const killIn = (ms: number) => {
      timer = setTimeout(() => {
        void world.server.kill()
        if (random() < AGAIN) killIn(random() * BOOT_MS)
      }, ms)
    }
    killIn(random() * LONGEST_STAGE_MS)
    try {
      await work()
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Plays rounds one after the other on one database, and looks at the whole of it at the end. The first one is calm; all come to the same. */
export async function playRounds(
  dialect: TestDialect,
  conducts: Iterable<(world: World) => Conduct>,
  onRound: (rounds: number, deaths: number) => void = () => {},
): Promise<{ rounds: number; deaths: number }> {
  const world = await World.open(dialect)
  let rounds = 1
  try {
    const usual = await playRound(world)
    for (const conduct of conducts) {
      assert.equal(await playRound(world, conduct(world)), usual)
      rounds += 1
      onRound(rounds, world.server.deaths)
    }
    await world.assertNoFlags()
    assert.equal(world.mails.needlessRepeats(), [], 'mails that were repeated without a death')
    return { rounds, deaths: world.server.deaths }
  } finally {
    await world.close()
  }
}
