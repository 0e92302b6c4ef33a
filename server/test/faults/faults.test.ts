// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { PROOF_FORM, proofCount } from '../testkit/proof-size.ts'
import { fc } from '../testkit/property.ts'
import { CONTRACTS, type Contract } from './contracts.ts'
import { FaultWorld, MOST_STORIES } from './fault-world.ts'
import type { Ending } from './judge.ts'
import { anyStory, inWords, type RandomStory, type Round } from './story.ts'
import { type Cell, cellsOf, lookupCells, SEQUELS, type SequelName } from './table.ts'

/** Over all databases and contracts together. */
const SEQUENCES = proofCount('FAULT_SEQUENCES', 6)
/** Of the table, an example plays every so many cells, other ones with each sequel. */
const EXAMPLE_EVERY = 7
/** Books grow with each story, and are read whole after it. */
const STORIES_A_DATABASE = 200
const PROGRESS_EVERY = 250
const KINDS = ['invoice', 'payout'] as const
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
        return [`${name}\n${inWords(story, rounds)}\n→ ${what.join('; ')}`]
      })
      assert.equal(wrong, [])
      cells += some.length
    }
    await world.market.verify()
  }

  const chosen = (all: readonly Cell[], turn: number) =>
    PROOF_FORM ? all : all.filter((_, index) => index % EXAMPLE_EVERY === turn % EXAMPLE_EVERY)

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

async function playRandom(dialect: TestDialect, contract: Contract, numRuns: number): Promise<void> {
  let world: FaultWorld | null = null
  let played = 0
  const started = performance.now()
  const property = fc.asyncProperty(anyStory, async (drawn) => {
    world ??= await FaultWorld.open(dialect, contract)
    const present = world
    // A world in which something went wrong says nothing about the next story.
    world = null
    try {
      await playOne(present, drawn)
    } catch (error) {
      await present.close()
      throw error
    }
    played += 1
    if (played % STORIES_A_DATABASE === 0) await present.close()
    else world = present
    if (played % PROGRESS_EVERY === 0) {
      const seconds = Math.round((performance.now() - started) / 1000)
      console.log(
        `\nprogress: ${played} of ${numRuns} sequences, ${contract} on ${dialect}, after ${seconds} s`,
      )
    }
  })
  const run = await fc.check(property, { numRuns })
  await (world as FaultWorld | null)?.close()
  if (run.failed && run.counterexample) throw new Error(failureOf(run.counterexample[0], run))
  console.log(
    `\nsize: processor faults, ${contract} on ${dialect}: ${played} random sequences, seed ${run.seed}`,
  )
}

async function playOne(world: FaultWorld, { story, rounds }: RandomStory): Promise<void> {
  const [judged] = await world.tell([story], rounds)
  if (!judged || judged.complaints.length > 0) throw new Error(judged?.complaints.join('; '))
  await world.market.verify()
}

function failureOf(
  { story, rounds }: RandomStory,
  run: { seed: number; counterexamplePath: string | null; errorInstance: unknown },
): string {
  const why = run.errorInstance instanceof Error ? run.errorInstance.message : String(run.errorInstance)
  return `${inWords(story, rounds)}\n→ ${why}\nTEST_SEED=${run.seed} FAULT_SEQUENCES=${SEQUENCES} repeats it (path ${run.counterexamplePath}).`
}
