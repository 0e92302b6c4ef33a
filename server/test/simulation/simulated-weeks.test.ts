// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SALE_REJECTION_REASONS } from '../../../shared/rejection-reasons.ts'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { fc } from '../testkit/property.ts'
import { retellStory, type Tally, tellWeeks } from './simulated-weeks.ts'

/** Over all databases together. */
const STORIES = proofCount('SIMULATED_WEEKS', 12)

const SEED = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31

const it = suite('simulated weeks')

/** Fewer stories need not contain every outcome. */
const ENOUGH = 200

function hasEverything(tallies: readonly Tally[]): void {
  const reasons = new Set(tallies.flatMap((tally) => [...tally.reasons]))
  assert.is(
    reasons.size,
    SALE_REJECTION_REASONS.length,
    `orders were rejected only for ${[...reasons].sort()}`,
  )
  for (const settled of ['byCode', 'cyclesCharged', 'payoutsPaid', 'payoutsFailed'] as const) {
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
