// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SALE_REJECTION_REASONS } from '../../../shared/rejection-reasons.ts'
import { type TestDialect, testDialects } from '../testkit/databases.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { fc } from '../testkit/property.ts'
import type { Tally } from './run-story.ts'
import { type Telling, tellStories } from './simulated-weeks.ts'

/** Over all databases together. */
const STORIES = proofCount('SIMULATED_WEEKS', 12)
const SEED = fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31
/** Fewer stories need not contain every outcome. */
const ENOUGH = 200

/** A story takes three times as long on PostgreSQL, and nearly every mistake shows on either. Other seeds tell other stories. */
function tellingsOn(dialects: readonly TestDialect[]): Telling[] {
  const shareOf = (dialect: TestDialect) => (dialects.length === 1 ? 1 : dialect === 'sqlite' ? 0.85 : 0.15)
  return dialects.map((dialect, index) => ({
    dialect,
    stories: Math.ceil(STORIES * shareOf(dialect)),
    seed: SEED + index,
  }))
}

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

const it = suite('simulated weeks')

const { STORY_PATH, STORY_ON = 'sqlite' } = process.env
if (STORY_PATH) {
  it('tells one story again, as it was printed', async () => {
    await tellStories({ dialect: STORY_ON as TestDialect, stories: 1, seed: SEED, path: STORY_PATH })
  })
} else {
  it(`${STORIES} stories leave the books that the oracle expects`, async () => {
    const tallies: Tally[] = []
    for (const telling of tellingsOn(testDialects())) tallies.push(await tellStories(telling))
    if (STORIES >= ENOUGH) hasEverything(tallies)
  })
}

it.run()
