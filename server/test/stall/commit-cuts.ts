import * as assert from 'uvu/assert'
import { planRounds } from '../kill/kill.ts'
import { POINTS, type Point, type Stage } from '../kill/points.ts'
import { type Conduct, playRound } from '../kill/round.ts'
import type { CutMoment } from '../testkit/tcp-proxy.ts'
import type { CommitProxy } from './commit-proxy.ts'
import { openStalledPostgres } from './stalling.ts'

/** The five that must hold in any case; one for each stage, so that two rounds have them all. */
const SHORT = [
  'a batch of clicks is written',
  'a batch of orders is taken into the inbox',
  'a late order closes its cycle',
  'a billing cycle is closed',
  'a payout is made',
]

type Cut = { point: Point; moment: CutMoment }

/** Every commit of a round, or the five, each cut before it and behind it. */
export function commitCuts(all: boolean): Cut[] {
  return POINTS.filter(({ seam, stage, name }) =>
    all ? 'commit' in seam && stage !== 'start' : SHORT.includes(name),
  ).flatMap((point) => (['before', 'after'] as const).map((moment) => ({ point, moment })))
}

/** Plays rounds on PostgreSQL in which the line is cut at each of these commits; the server stays alive. */
export async function playCutRounds(cuts: readonly Cut[]): Promise<number> {
  const { world, proxy, close } = await openStalledPostgres()
  try {
    const usual = await playRound(world)
    for (const plan of planRounds(cuts, 1)) assert.equal(await playRound(world, cutAt(proxy, plan)), usual)
    assert.is(world.server.deaths, 0)
    await world.assertNoFlags()
    return proxy.cuts
  } finally {
    await close()
  }
}

function cutAt(proxy: CommitProxy, plan: Partial<Record<Stage, Cut>>): Conduct {
  return async (stage, work) => {
    const cut = plan[stage]
    const before = proxy.cuts
    if (cut) proxy.cutAt(cut.point.seam, cut.moment)
    await work()
    assert.is(proxy.cuts, before + Number(cut !== undefined), `never reached: ${cut?.point.name}`)
  }
}
