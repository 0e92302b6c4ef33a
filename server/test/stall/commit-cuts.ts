import { planRounds } from '../kill/kill.ts'
import { describe, POINTS, type Stage, type Target } from '../kill/points.ts'
import type { Conduct } from '../kill/round.ts'
import type { World } from '../kill/world.ts'

/** The five that must hold in any case; one for each stage, so that two rounds have them all. */
const SHORT = [
  'a batch of clicks is written',
  'a batch of orders is taken into the inbox',
  'a late order closes its cycle',
  'a billing cycle is closed',
  'a payout is made',
]

/** Every commit of a round, or the five: each is cut `before` PostgreSQL hears it, and `after`, so that only its answer is lost. */
export function commitCuts(all: boolean): Target[] {
  return POINTS.filter(({ seam, stage, name }) =>
    all ? 'commit' in seam && stage !== 'start' : SHORT.includes(name),
  ).flatMap((point) => (['before', 'after'] as const).map((moment) => ({ point, moment })))
}

/** Rounds in which the server lives on, and loses a connection to its database at each of these commits. */
export function cutRounds(cuts: readonly Target[]): ((world: World) => Conduct)[] {
  return planRounds(cuts, 1).map((plan) => (world) => cutAt(world, plan))
}

function cutAt({ server }: World, plan: Partial<Record<Stage, Target>>): Conduct {
  return async (stage, work) => {
    const target = plan[stage]
    if (target) await server.obey({ kind: 'arm', target, cut: true })
    await work()
    if (!target) return
    await server.obey({ kind: 'reached' }).catch((error: Error) => {
      throw new Error(`${describe(target)}: ${error.message}`)
    })
  }
}
