import { Caches } from '../../platform/cache/caches.ts'
import type { OpenDatabase } from '../../platform/database/open-database.ts'
import { withRowKeys } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { Topics } from '../../platform/topics.ts'
import { clockText, DAY } from '../oracle/calendar.ts'
import type { AnswerTo } from '../oracle/calls.ts'
import { addDestination, addLiveOffer, addPerson, addStore } from '../oracle/marketplace.ts'
import { emptyState, type State, type Terms } from '../oracle/state.ts'
import { ManualClock } from '../testkit/testbed.ts'
import { mustAgree } from './difference.ts'
import { PRODUCTS } from './order-body.ts'
import { Services } from './services.ts'
import { simulatedIds } from './simulated-ids.ts'
import type { OfferTerms, Story } from './story.ts'
import { namesOf, offerNames, pick, storeNames } from './world.ts'

/** A running story: the oracle's model and the services side by side, and its lines so far. */
export interface Scene {
  story: Story
  model: State
  services: Services
  clock: ManualClock
  /** What happened, one line a thing. */
  log: string[]
  /** What is on its way to the service: due at a moment, in the order of their sending. */
  underWay: { at: number; arrive: () => Promise<void> }[]
  /** Numbers for orders, deliveries and the like. */
  next(): number
  answerTo: AnswerTo
  /** The secret that each store has now. */
  secrets: Map<string, string>
}

/** Few, so that orders expire within a story, and are paid afterwards. */
export const PENDING_DAYS = 3

/** The marketplace before the story begins, alike for the model and the services. */
export async function openScene(platform: Platform, database: OpenDatabase, story: Story): Promise<Scene> {
  const clock = new ManualClock(new Date(story.start).toISOString())
  const { feeRate, threshold, payoutUnit, period } = story.settings
  const config = {
    ...platform.config,
    PLATFORM_FEE_RATE: feeRate,
    PAYOUT_THRESHOLD: threshold,
    BILLING_PERIOD: period,
    PENDING_ORDER_DAYS: PENDING_DAYS,
  }
  const parts = {
    database: withRowKeys(database, platform.keys),
    clock,
    ids: simulatedIds(clock),
    caches: new Caches({ maxEntries: 1000 }),
    topics: new Topics(),
  }
  const answerTo: AnswerTo = (subject, nth) => answersFor(story, subject)[nth] ?? 'ok'
  let count = 0
  const scene: Scene = {
    story,
    model: emptyState({
      platformFeeRate: feeRate,
      payoutThreshold: threshold,
      payoutUnit,
      period,
      trackingParameter: config.TRACKING_PARAMETER,
    }),
    services: new Services({ ...platform, ...parts, config }, answerTo),
    clock,
    log: [],
    underWay: [],
    next: () => ++count,
    answerTo,
    secrets: new Map(),
  }
  scene.services.processor.payoutUnit = payoutUnit
  await furnish(scene)
  return scene
}

function answersFor(story: Story, subject: string) {
  if (story.answers.length === 0) return []
  return pick(
    story.answers,
    [...subject].reduce((sum, letter) => sum + letter.charCodeAt(0), 0),
  )
}

async function furnish(scene: Scene): Promise<void> {
  const { story, model, services, clock } = scene
  const { merchants, creators } = namesOf(story)
  for (const merchant of merchants) {
    const email = await services.addPerson(merchant, 'merchant')
    addPerson(model, { name: merchant, role: 'merchant', email })
    for (const store of storeNames(story, merchant)) {
      const secret = `secret of ${store}`
      scene.secrets.set(store, secret)
      await services.connectStore(store, merchant, secret)
      addStore(model, store, merchant, secret)
    }
    const plans = story.merchants[merchants.indexOf(merchant)]?.offers ?? []
    for (const [index, offer] of offerNames(story, merchant).entries()) {
      const terms = termsOf(plans[index] as OfferTerms)
      await services.addLiveOffer(offer, merchant, terms)
      addLiveOffer(model, offer, merchant, terms, clock.now())
    }
  }
  for (const [index, creator] of creators.entries()) {
    addPerson(model, { name: creator, role: 'creator', email: await services.addPerson(creator, 'creator') })
    if (!story.creators[index]?.hasDestination) continue
    await services.addDestination(creator)
    addDestination(model, creator, clock.now())
  }
}

export function termsOf(plan: OfferTerms): Terms {
  return {
    rate: plan.rate,
    windowDays: plan.windowDays,
    productIds: plan.products.map((product) => PRODUCTS[product] ?? ''),
  }
}

/** Adds a line to the story, with the day and the time in Karachi. */
export function tell(scene: Scene, text: string): void {
  const now = scene.clock.now()
  const day = Math.floor((now - scene.story.start) / DAY) + 1
  scene.log.push(`day ${day}, ${clockText(now)}  ${text}`)
}

/** Adds what the model says to the story, and throws unless the services have done the same. */
export async function agree(
  scene: Scene,
  what: string,
  expected: unknown,
  found: Promise<unknown>,
): Promise<void> {
  tell(scene, `${what}: ${expected}`)
  mustAgree(what, expected, await found)
}

/** Something to arrive at a moment, or now if that has passed. */
export function send(scene: Scene, at: number, arrive: () => Promise<void>): void {
  const later = scene.underWay.findIndex((one) => one.at > at)
  scene.underWay.splice(later === -1 ? scene.underWay.length : later, 0, { at, arrive })
}
