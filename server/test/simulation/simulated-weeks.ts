import type { Platform } from '../../platform/platform.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { fc } from '../testkit/property.ts'
import { openTestbed } from '../testkit/testbed.ts'
import { Difference } from './difference.ts'
import { type FreshBooks, openFreshBooks } from './fresh-books.ts'
import { runStory, StoryFailed, type StoryResult } from './run-story.ts'
import { storiesOf } from './stories.ts'
import type { Story } from './story.ts'

export interface Telling {
  dialect: TestDialect
  stories: number
  steps: number
  seed: number
  /** The path of a failing story, as printed: only that story runs. */
  path?: string
  shorteningMs?: number
  /** Called after each story with the totals so far. */
  onStory?: (tally: Tally) => void
}

/** Of a long form's stories, how many pass between two lines about its progress. */
const PROGRESS_EVERY = 100

/** A story takes three times as long on PostgreSQL, and nearly every mistake shows on either. */
function shareOf(dialect: TestDialect, dialects: number): number {
  if (dialects === 1) return 1
  return dialect === 'sqlite' ? 0.85 : 0.15
}

/**
 * As many stories in all, part of them on each database, with a line to `say` now and then. Other seeds tell other stories: the
 * databases get different ones too.
 */
export async function tellWeeks(
  dialects: readonly TestDialect[],
  { stories, seed }: { stories: number; seed: number },
  say: (line: string) => void,
): Promise<Tally[]> {
  const tallies: Tally[] = []
  for (const [index, dialect] of dialects.entries()) {
    const each = Math.ceil(stories * shareOf(dialect, dialects.length))
    const started = performance.now()
    const progress = (tally: Tally) => {
      const ms = (performance.now() - started) / tally.stories
      const said = `${dialect}, seed ${seed + index}: ${tallyText(tally)}, ${ms.toFixed(0)} ms a story`
      if (tally.stories === each) say(`\nsize: ${said}`)
      else if (tally.stories % PROGRESS_EVERY === 0) say(`\nprogress: ${said}`)
    }
    tallies.push(
      await tellStories({ dialect, stories: each, steps: STEPS, seed: seed + index, onStory: progress }),
    )
  }
  return tallies
}

/** Tells one story that was printed with its seed and path. */
export async function retellStory(dialect: TestDialect, seed: number, path: string): Promise<void> {
  await tellStories({ dialect, stories: 1, steps: STEPS, seed, path })
}

function tallyText(tally: Tally): string {
  const { stories, events, accepted, byCode, rejected, reasons, cyclesCharged, payoutsPaid, payoutsFailed } =
    tally
  return [
    `${stories} stories`,
    `${events} events`,
    `${accepted} sales accepted (${byCode} by coupon code) and ${rejected} rejected for ${reasons.size} reasons`,
    `${cyclesCharged} cycles charged`,
    `${payoutsPaid} payouts paid and ${payoutsFailed} failed`,
  ].join(', ')
}

/** Steps of a story: with redeliveries and the processor's words they come to about a hundred events. */
const STEPS = 60

export interface Tally {
  stories: number
  events: number
  accepted: number
  /** Of the accepted ones, by a coupon code. */
  byCode: number
  rejected: number
  /** Every reason for which an order was rejected. */
  reasons: Set<string>
  cyclesCharged: number
  payoutsPaid: number
  payoutsFailed: number
}

/** Default limit for shrinking a failing story, ms; the shortest one found is printed. */
const SHORTENING_MS = 90_000

/** Tells stories until one goes wrong, which is then made short and thrown in words. */
export async function tellStories(telling: Telling): Promise<Tally> {
  const bed = await openTestbed('sqlite')
  const books = await openFreshBooks(telling.dialect)
  try {
    return await tellOn(bed.platform, books, telling)
  } finally {
    await books.close()
    await bed.close()
  }
}

async function tellOn(platform: Platform, books: FreshBooks, telling: Telling): Promise<Tally> {
  const tally: Tally = {
    stories: 0,
    events: 0,
    accepted: 0,
    byCode: 0,
    rejected: 0,
    reasons: new Set(),
    cyclesCharged: 0,
    payoutsPaid: 0,
    payoutsFailed: 0,
  }
  const timeoutMs = telling.shorteningMs ?? SHORTENING_MS
  let failedAt: number | null = null
  const property = fc.asyncProperty(storiesOf(telling.steps), async (story) => {
    if (failedAt !== null && performance.now() - failedAt > timeoutMs) return
    try {
      add(tally, await runStory(platform, await books.next(), story))
      if (failedAt === null) telling.onStory?.(tally)
    } catch (error) {
      failedAt ??= performance.now()
      throw error
    }
  })
  const { stories: numRuns, seed, path } = telling
  const run = await fc.check(property, { numRuns, seed, ...(path === undefined ? {} : { path }) })
  if (run.failed) throw new Error(inWords(telling, run))
  return tally
}

function add(tally: Tally, result: StoryResult): void {
  tally.stories += 1
  tally.events += result.events
  tally.accepted += result.sales.accepted
  tally.byCode += result.sales.byCode
  tally.rejected += result.sales.rejected.length
  for (const reason of result.sales.rejected) tally.reasons.add(reason)
  tally.cyclesCharged += result.cyclesCharged
  tally.payoutsPaid += result.payoutsPaid
  tally.payoutsFailed += result.payoutsFailed
}

/** The failing story, the difference, and how to tell it again. */
function inWords(telling: Telling, run: fc.RunDetails<[Story]>): string {
  const failure = run.errorInstance
  const story = run.counterexample?.[0]
  const cause = failure instanceof StoryFailed ? failure.cause : failure
  return [
    `story ${run.numRuns} on ${telling.dialect} went wrong; made short ${run.numShrinks} times it goes:`,
    ...(story ? settingLines(story) : []),
    ...(failure instanceof StoryFailed ? failure.log : []).map((line) => `  ${line}`),
    'and then:',
    ...(cause instanceof Difference ? cause.lines : [failureText(cause)]).map((line) => `  ${line}`),
    `to repeat it: STORY_ON=${telling.dialect} TEST_SEED=${run.seed} STORY_PATH=${run.counterexamplePath}`,
  ].join('\n')
}

function failureText(failure: unknown): string {
  return failure instanceof Error ? (failure.stack ?? failure.message) : String(failure)
}

function settingLines({ settings, merchants, creators, answers }: Story): string[] {
  return [
    `  platform fee ${settings.feeRate / 100} %, payouts from ${settings.threshold / 100} rupees in units of ${settings.payoutUnit} paisa, cycles ${settings.period}`,
    `  merchants: ${JSON.stringify(merchants)}`,
    `  creators: ${JSON.stringify(creators)}, answers to calls: ${JSON.stringify(answers)}`,
  ]
}
