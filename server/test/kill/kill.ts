import * as assert from 'uvu/assert'
import type { TestDialect } from '../testkit/databases.ts'
import { needlessRepeats } from './mails.ts'
import { PROCESSORS, type ProcessorName } from './outside-processor.ts'
import { describe, type Moment, momentsOf, POINTS, type Point, type Stage, type Target } from './points.ts'
import { type Conduct, playRound } from './round.ts'
import { World } from './world.ts'

const REACHED_WITHIN_MS = 300_000

/** Before these, a round has nothing to do with the processor. */
const BEFORE_PROCESSOR: readonly Stage[] = ['start', 'clicks', 'orders', 'again']

/**
 * Every point, on one database: with all its moments when the proof is `thorough`, else with one, which is another one on each
 * database, and with a second processor where it has a part. Just before an answer that is promised by a commit they die on both.
 */
export function targetsOn(dialect: TestDialect, processor: ProcessorName, thorough: boolean): Target[] {
  const isPlayed = ({ stage }: Point) =>
    thorough || processor === PROCESSORS[0] || !BEFORE_PROCESSOR.includes(stage)
  return POINTS.filter(isPlayed).flatMap((point, index) => {
    const moments = momentsOf(point, dialect, thorough)
    const turn = (index + (dialect === 'sqlite' ? 0 : 1)) % moments.length
    const isAsked = (moment: Moment, at: number) =>
      thorough || at === turn || (point.answered === true && moment === 'before')
    return moments.filter(isAsked).map((moment) => ({ point, moment }))
  })
}

/**
 * Rounds that reach every target `times` times, at most one in each stage of a round. With Safepay, at most one in `billing` and `payouts`
 * together: an event that comes before the token is known is applied after the restart, whose first run then pays out in `billing` what
 * `payouts` is about.
 */
export function planRounds<T extends { point: Point }>(
  targets: readonly T[],
  times: number,
  processor: ProcessorName = 'http',
): Partial<Record<Stage, T>>[] {
  const turns = Map.groupBy(Array.from({ length: times }, () => targets).flat(), ({ point: { stage } }) =>
    processor === 'safepay-raast' && stage === 'payouts' ? 'billing' : stage,
  )
  const rounds = Math.max(...[...turns.values()].map((list) => list.length))
  return Array.from({ length: rounds }, (_, round) =>
    Object.fromEntries(
      [...turns.values()].flatMap((list) => (list[round] ? [[list[round].point.stage, list[round]]] : [])),
    ),
  )
}

/** Has the server die at the target of each stage; a target that is not reached is a failure. */
export function dieAt(world: World, plan: Partial<Record<Stage, Target>>): Conduct {
  return async (stage, work) => {
    const planned = plan[stage]
    if (!planned) return work()
    const target = aimedAt(world, planned)
    const { server } = world
    if (stage === 'start') {
      await world.up()
      await server.kill()
      await server.alive(target).catch(() => undefined)
    } else {
      await world.up()
      await server.obey({ kind: 'arm', target })
    }
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

/** The target with the path that a call has at this processor. */
function aimedAt({ processor }: World, { point, moment }: Target): Target {
  const { seam } = point
  if (!('call' in seam)) return { point, moment }
  return { point: { ...point, seam: { call: processor.pathOf(seam.call) } }, moment }
}

/** Plays rounds one after the other on one database, and looks at the whole of it at the end. The first one is calm; all come to the same. */
export async function playRounds(
  { dialect, processor }: { dialect: TestDialect; processor: ProcessorName },
  conducts: Iterable<(world: World) => Conduct>,
  onRound: (rounds: number, deaths: number) => void = () => {},
): Promise<{ rounds: number; deaths: number }> {
  const world = await World.open(dialect, undefined, processor)
  let rounds = 1
  try {
    const usual = await playRound(world)
    for (const conduct of conducts) {
      assert.equal(await playRound(world, conduct(world)), usual)
      rounds += 1
      onRound(rounds, world.server.deaths)
    }
    await world.assertNoFlags()
    assert.equal(needlessRepeats(world.mails), [], 'mails that were repeated without a death')
    return { rounds, deaths: world.server.deaths }
  } finally {
    await world.close()
  }
}
