import { makeCalls } from '../oracle/calls.ts'
import { applyProcessorEvents, applyStoreEvents, PROCESSOR } from '../oracle/inbox.ts'
import { type Scene, tell } from './scene.ts'
import type { Due } from './services.ts'

/** Whatever was under way and is due by now comes in. */
export async function receiveDue(scene: Scene): Promise<void> {
  while (scene.underWay[0] && scene.underWay[0].at <= scene.clock.now()) {
    await scene.underWay.shift()?.arrive()
  }
}

/** The workers get round to what waits, by the model's word: a look for nothing takes as long as a look for something. */
export async function work(scene: Scene, batchSize: number): Promise<void> {
  const { events, calls } = scene.model
  const pending = events.filter((event) => event.state === 'pending')
  await workThrough(scene, batchSize, {
    orders: pending.some((event) => event.scope !== PROCESSOR),
    events: pending.some((event) => event.scope === PROCESSOR),
    // An accepted order can close a cycle.
    calls: pending.length > 0 || calls.some((call) => call.state === 'waiting'),
  })
}

/** The workers look everywhere. */
export function workThroughAll(scene: Scene): Promise<void> {
  return workThrough(scene, 500, { orders: true, events: true, calls: true })
}

async function workThrough(scene: Scene, batchSize: number, due: Due): Promise<void> {
  const now = scene.clock.now()
  tell(scene, WORK)
  await scene.services.work(batchSize, due)
  applyStoreEvents(scene.model, now)
  applyProcessorEvents(scene.model, now)
  makeCalls(scene.model, scene.answerTo, now)
  const { events, calls } = scene.model
  const waits = [...events, ...calls].some(({ state }) => state === 'pending' || state === 'waiting')
  if (waits) await scene.services.evenWaits()
}

/** The one line of a story that is no event. */
export const WORK = 'the workers work'
