// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { PROOF_FORM, proofCount } from '../testkit/proof-size.ts'
import { fc } from '../testkit/property.ts'
import { CONTRACTS, type Contract } from './contracts.ts'
import { FaultWorld, MOST_STORIES } from './fault-world.ts'
import type { Ending } from './judge.ts'
import { anyStories, type Round, STORIES_AT_ONCE } from './story.ts'
import { type Cell, cellsOf, lookupCells, SEQUELS, type SequelName } from './table.ts'

/** Over all databases and contracts together. */
const SEQUENCES = proofCount('FAULT_SEQUENCES', 6)
/** Books grow with each story, and are read whole after it. */
const STORIES_A_DATABASE = 200
const KINDS = ['invoice', 'payout'] as const

/** Every so many cells of the table are played, other ones with each sequel. The short form plays each contract's whole table on one database. */
function everyOf(dialect: TestDialect, contract: Contract): number {
  if (PROOF_FORM === undefined) return 7
  const isApart = (dialect === 'sqlite') !== (contract === 'generic')
  return PROOF_FORM === 'short' && isApart && testDialects().length > 1 ? 4 : 1
}

const WORLDS = testDialects().flatMap((dialect) => CONTRACTS.map((contract) => [dialect, contract] as const))

for (const [dialect, contract] of WORLDS) {
  const name = `${contract} on ${dialect}`
  const table = suite(`each fault of the processor, ${name}`)
  const endings = new Map<Ending, number>()
  let world: FaultWorld
  let cells = 0
  table.before(async () => {
    world = await FaultWorld.open(dialect, contract)
  })
  table.after(() => world?.close())

  /** Plays a part of the table, in as many goes as it takes. */
  const play = async (part: readonly Cell[], rounds: readonly Round[]) => {
    for (let from = 0; from < part.length; from += MOST_STORIES) {
      const some = part.slice(from, from + MOST_STORIES)
      const judged = await world.tell(
        some.map(({ story }) => story),
        rounds,
      )
      const wrong = some.flatMap(({ name, story, ends }, index) => {
        const { ending, complaints, flags } = judged[index] ?? { ending: 'silent', complaints: [], flags: [] }
        endings.set(ending, (endings.get(ending) ?? 0) + 1)
        if (ending === ends && complaints.length === 0) return []
        const what = [`ended ${ending} (${flags.join() || 'no flags'}), not ${ends}`, ...complaints]
        return [`${name}, ${JSON.stringify({ story, rounds })}\n→ ${what.join('; ')}`]
      })
      assert.equal(wrong, [])
      cells += some.length
    }
    await world.market.verify()
  }

  const every = everyOf(dialect, contract)
  const chosen = (all: readonly Cell[], turn: number) =>
    all.filter((_, index) => index % every === turn % every)

  for (const [turn, sequel] of (Object.keys(SEQUELS) as SequelName[]).entries()) {
    table(sequel, async () => {
      for (const [index, kind] of KINDS.entries())
        await play(chosen(cellsOf(sequel, kind), turn + 3 * index), SEQUELS[sequel].rounds)
    })
  }

  table('each fault of a look-up', async () => {
    for (const [index, kind] of KINDS.entries()) await play(chosen(lookupCells(kind), 3 * index), [])
  })

  table('reached every ending but silence', () => {
    const seen = Object.fromEntries([...endings].sort())
    console.log(`\nsize: processor faults, ${name}: ${cells} cells, ${JSON.stringify(seen)}`)
    assert.equal(Object.keys(seen), ['flagged', 'refused', 'settled'])
  })

  table.run()

  const random = suite(`sequences of faults, ${name}`)
  random('have at most one effect, and a flag where a person must act', async () => {
    await playRandom(dialect, contract, Math.ceil(SEQUENCES / WORLDS.length))
  })
  random.run()
}

async function playRandom(dialect: TestDialect, contract: Contract, sequences: number): Promise<void> {
  let world: FaultWorld | null = null
  let played = 0
  const property = fc.asyncProperty(anyStories, async ({ stories, rounds }) => {
    const present = world ?? (await FaultWorld.open(dialect, contract))
    // A world in which something went wrong says nothing about the next stories.
    world = null
    try {
      const judged = await present.tell(stories, rounds)
      const complaints = judged.flatMap((one) => one.complaints)
      if (complaints.length > 0) throw new Error(complaints.join('; '))
      await present.market.verify()
    } catch (error) {
      await present.close()
      throw error
    }
    const before = Math.floor(played / STORIES_A_DATABASE)
    played += stories.length
    if (Math.floor(played / STORIES_A_DATABASE) === before) {
      present.forgetCreators()
      world = present
      return
    }
    await present.close()
    console.log(`\nprogress: ${played} of ${sequences} sequences, ${contract} on ${dialect}`)
  })
  const run = await fc.check(property, { numRuns: Math.ceil(sequences / STORIES_AT_ONCE) })
  await (world as FaultWorld | null)?.close()
  if (run.failed) {
    const story = JSON.stringify(run.counterexample)
    throw new Error(
      `${story}\n→ ${run.errorInstance}\nTEST_SEED=${run.seed} FAULT_SEQUENCES=${SEQUENCES} repeats it`,
    )
  }
  console.log(
    `\nsize: processor faults, ${contract} on ${dialect}: ${played} random sequences, seed ${run.seed}`,
  )
}
