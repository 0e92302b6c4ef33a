// proof only
// mostly waits
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planRounds, playRounds } from '../kill/kill.ts'
import { describe, POINTS, type Stage, type Target } from '../kill/points.ts'
import type { Conduct } from '../kill/round.ts'
import type { World } from '../kill/world.ts'
import { testDialects } from '../testkit/databases.ts'
import { PROOF_FORM } from '../testkit/proof-size.ts'
import { stallUnderLoad } from './stalled-load.ts'

/** Seconds, comma-separated. */
const STALLS = (process.env.STALLS ?? '1').split(',').map(Number)
const ALL_CUTS = PROOF_FORM === 'long'

/** The five that must hold in any case; one for each stage, so that two rounds have them all. */
const SHORT = [
  'a batch of clicks is written',
  'a batch of orders is taken into the inbox',
  'a late order closes its cycle',
  'a billing cycle is closed',
  'a payout is made',
]

/** Every commit of a round, or the five: each is cut `before` PostgreSQL hears it, and `after`, so that only its answer is lost. */
function commitCuts(all: boolean): Target[] {
  return POINTS.filter(({ seam, stage, name }) =>
    all ? 'commit' in seam && stage !== 'start' : SHORT.includes(name),
  ).flatMap((point) => (['before', 'after'] as const).map((moment) => ({ point, moment })))
}

/** Rounds in which the server lives on, and loses a connection to its database at each of these commits. */
function cutRounds(cuts: readonly Target[]): ((world: World) => Conduct)[] {
  return planRounds(cuts, 1).map((plan) => (world) => cutAt(world, plan))
}

function cutAt({ server }: World, plan: Partial<Record<Stage, Target>>): Conduct {
  return async (stage, work) => {
    const target = plan[stage]
    if (!target) return work()
    assert.ok(await server.obey({ kind: 'arm', target, cut: true }))
    await work()
    const reached = server.obey({ kind: 'reached' })
    assert.ok(await reached.catch(() => false), `never reached: ${describe(target)}`)
  }
}

const it = suite('a database that stands still')

for (const dialect of testDialects()) {
  for (const seconds of STALLS) {
    it(`is answered for, and nothing is lost, when ${dialect} stalls for ${seconds} s under load`, async () => {
      const report = await stallUnderLoad(dialect, seconds * 1000)
      console.log(`${dialect}, ${seconds} s: ${JSON.stringify(report)}`)
    })
  }
}

if (testDialects().includes('postgresql')) {
  it('loses and doubles nothing when the line is cut around a commit', async () => {
    const cuts = commitCuts(ALL_CUTS)
    const { deaths } = await playRounds('postgresql', cutRounds(cuts))
    assert.is(deaths, 0)
    console.log(`${cuts.length} commits cut`)
  })
}

it.run()
