import { openTestDatabase, type TestDialect } from '../testkit/databases.ts'
import { fc } from '../testkit/property.ts'
import { openTestbed } from '../testkit/testbed.ts'
import { writeUnsynced } from '../testkit/unsynced.ts'
import { Difference } from './difference.ts'
import { runStory, StoryFailed, Tally } from './run-story.ts'
import { type Story, storiesOf } from './story.ts'

/** Steps of a story: with redeliveries and the processor's words they come to about a hundred events. */
const STEPS = 60
/** Of a long form's stories, how many pass between two lines about its progress. */
const PROGRESS_EVERY = 100
/** Limit for shrinking a failing story, ms; the shortest one found is printed. */
const SHORTENING_MS = 90_000

export interface Telling {
  dialect: TestDialect
  stories: number
  seed: number
  /** The path of a failing story, as printed: only that story runs. */
  path?: string
}

/** Tells stories until one goes wrong, which is then made short and thrown in words. */
export async function tellStories(telling: Telling): Promise<Tally> {
  const { dialect, stories, seed, path } = telling
  const bed = await openTestbed('sqlite')
  const tally = new Tally()
  const started = performance.now()
  let failedAt: number | null = null
  const property = fc.asyncProperty(storiesOf(STEPS), async (story) => {
    if (failedAt !== null && performance.now() - failedAt > SHORTENING_MS) return
    const books = await openTestDatabase(dialect)
    try {
      // Nothing here is about a power cut. PostgreSQL's setting would keep its database from being used again.
      if (dialect === 'sqlite') await writeUnsynced(books.database)
      await runStory(bed.platform, books.database, story, tally)
    } catch (error) {
      failedAt ??= performance.now()
      throw error
    } finally {
      await books.close()
    }
    if (failedAt !== null || (tally.stories !== stories && tally.stories % PROGRESS_EVERY !== 0)) return
    const ms = ((performance.now() - started) / tally.stories).toFixed(0)
    const what = tally.stories === stories ? 'size' : 'progress'
    console.log(`\n${what}: ${dialect}, seed ${seed}: ${tally}, ${ms} ms a story`)
  })
  const run = await fc.check(property, { numRuns: stories, seed, ...(path === undefined ? {} : { path }) })
  await bed.close()
  if (run.failed) throw new Error(inWords(telling, run))
  return tally
}

/** The failing story, the difference, and how to tell it again. */
function inWords({ dialect }: Telling, run: fc.RunDetails<[Story]>): string {
  const failure = run.errorInstance
  const { steps: _steps, ...story } = run.counterexample?.[0] ?? { steps: [] }
  const cause = failure instanceof StoryFailed ? failure.cause : failure
  const causeText = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [
    `story ${run.numRuns} on ${dialect} went wrong; made short ${run.numShrinks} times it goes:`,
    JSON.stringify(story),
    ...(failure instanceof StoryFailed ? failure.log : []),
    'and then:',
    ...(cause instanceof Difference ? cause.lines : [causeText]),
    `to repeat it: STORY_ON=${dialect} TEST_SEED=${run.seed} STORY_PATH=${run.counterexamplePath}`,
  ].join('\n  ')
}
