// time limit: 600 s
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type TestDialect, testDialects } from '../testbed/databases.ts'
import { fc } from '../testbed/property.ts'
import { retellStory, type Tally, tellWeeks } from './simulated-weeks.ts'

/** In all, over both databases. SIMULATED_WEEKS=10000 is the long form: it takes longer than this file's limit. */
const STORIES = Number(process.env.SIMULATED_WEEKS ?? 200)

/** One seed a commit, unless TEST_SEED says otherwise. */
const SEED = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31

const it = suite('simulated weeks')

/** So few stories need not have everything in them. */
const ENOUGH = 200

function hasEverything(tallies: readonly Tally[]): void {
  const reasons = new Set(tallies.flatMap((tally) => [...tally.reasons]))
  assert.is(reasons.size, 14, `orders were rejected only for ${[...reasons].sort()}`)
  for (const settled of ['cyclesCharged', 'payoutsPaid', 'payoutsFailed'] as const) {
    assert.ok(
      tallies.some((tally) => tally[settled] > 0),
      settled,
    )
  }
}

const { STORY_PATH, STORY_ON = 'sqlite' } = process.env
if (STORY_PATH) {
  it('tells one story again, as it was printed', () => retellStory(STORY_ON as TestDialect, SEED, STORY_PATH))
} else {
  it(`${STORIES} stories leave the books that the oracle expects`, async () => {
    const tallies = await tellWeeks(testDialects(), { stories: STORIES, seed: SEED }, console.log)
    if (STORIES >= ENOUGH) hasEverything(tallies)
  })
}

it.run()
