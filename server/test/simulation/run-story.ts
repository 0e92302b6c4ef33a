import type { OpenDatabase } from '../../platform/database/open-database.ts'
import type { Platform } from '../../platform/platform.ts'
import { booksOf } from '../oracle/books.ts'
import { MINUTE, periodAt } from '../oracle/calendar.ts'
import { breachesIn } from '../testkit/marketplace.ts'
import { act } from './act.ts'
import { Difference, differencesBetween } from './difference.ts'
import { foundBooks } from './found-books.ts'
import { openScene, type Scene } from './scene.ts'
import type { Step, Story, Wait } from './story.ts'
import { receiveDue, WORK, work, workThroughAll } from './workers.ts'

/** What happened in all stories without a difference. */
export class Tally {
  stories = 0
  /** Deliveries, words, runs, changes. */
  events = 0
  accepted = 0
  /** Of the accepted ones, by a coupon code. */
  byCode = 0
  rejected = 0
  /** Every reason for which an order was rejected. */
  readonly reasons = new Set<string>()
  cyclesCharged = 0
  payoutsPaid = 0
  payoutsFailed = 0

  add({ model, log }: Scene): void {
    this.stories += 1
    this.events += log.filter((line) => !line.endsWith(WORK)).length
    for (const { reason, code } of model.sales) {
      if (reason !== null) this.reasons.add(reason)
      this.rejected += Number(reason !== null)
      this.accepted += Number(reason === null)
      this.byCode += Number(reason === null && code !== null)
    }
    this.cyclesCharged += model.cycles.filter(({ state }) => state === 'charged').length
    this.payoutsPaid += model.payouts.filter(({ state }) => state === 'paid').length
    this.payoutsFailed += model.payouts.filter(({ state }) => state === 'failed').length
  }

  toString(): string {
    const sales = `${this.accepted} sales accepted (${this.byCode} by coupon code) and ${this.rejected} rejected`
    const payouts = `${this.payoutsPaid} payouts paid and ${this.payoutsFailed} failed`
    return (
      `${this.stories} stories, ${this.events} events, ${sales} for ${this.reasons.size} reasons, ` +
      `${this.cyclesCharged} cycles charged, ${payouts}`
    )
  }
}

/** A story that failed, with its lines up to the failure. */
export class StoryFailed extends Error {
  readonly log: readonly string[]

  constructor(log: readonly string[], cause: unknown) {
    super(cause instanceof Error ? (cause.stack ?? cause.message) : String(cause), { cause })
    this.name = 'StoryFailed'
    this.log = log
  }
}

/** Tells a story to the model and to the services, and compares them on the way and at the end. */
export async function runStory(
  platform: Platform,
  database: OpenDatabase,
  story: Story,
  tally: Tally,
): Promise<void> {
  const scene = await openScene(platform, database, story)
  try {
    await tellAll(scene)
  } catch (error) {
    throw new StoryFailed(scene.log, error)
  } finally {
    await scene.services.idle()
  }
  tally.add(scene)
}

async function tellAll(scene: Scene): Promise<void> {
  const { steps } = scene.story
  const third = Math.ceil(steps.length / 3)
  for (const [index, step] of steps.entries()) {
    await tellStep(scene, step, index)
    if (index + 1 === third || index + 1 === 2 * third) await compare(scene)
  }
  await finish(scene)
}

/** What is under way arrives when the clock has come to the step; then the step's own thing happens. */
async function tellStep(scene: Scene, step: Step, index: number): Promise<void> {
  const now = scene.clock.now()
  const wait = momentAfter(now, step.wait) - now
  // What has arrived is written at the time of its arrival.
  if (wait > 0) await scene.services.flush()
  scene.clock.pass(Math.max(0, wait))
  await receiveDue(scene)
  await act(scene, step.action)
  if (!step.work) return
  await receiveDue(scene)
  // Batches of two make some of what came at once be decided apart.
  await work(scene, index % 4 === 3 ? 2 : 500)
}

function momentAfter(now: number, wait: Wait): number {
  return 'ms' in wait ? now + wait.ms : periodAt(now, wait.until).end + wait.plus
}

/** Everything that is still under way arrives and is applied. */
async function finish(scene: Scene): Promise<void> {
  await work(scene, 500)
  while (scene.underWay.length > 0) {
    const { at } = scene.underWay[Math.floor(scene.underWay.length / 2)] ?? { at: 0 }
    scene.clock.pass(Math.max(0, at - scene.clock.now()))
    await receiveDue(scene)
    await work(scene, 500)
  }
  scene.clock.pass(MINUTE)
  await workThroughAll(scene)
  await compare(scene)
  await verify(scene)
}

async function compare(scene: Scene): Promise<void> {
  await scene.services.flush()
  const differences = differencesBetween(booksOf(scene.model), await foundBooks(scene.services))
  if (differences.length > 0) throw new Difference(differences)
}

/** What must hold of the books whatever happened. */
async function verify(scene: Scene): Promise<void> {
  const breaches = await breachesIn(scene.services.platform)
  if (breaches.length > 0) throw new Difference(breaches)
}
