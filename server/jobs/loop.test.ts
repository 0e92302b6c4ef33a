import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { Loop, type LoopWork } from './loop.ts'

interface Context {
  bed: Testbed
}

const it = suite<Context>('worker loop')
it.before(async (context) => {
  context.bed = await openTestbed('sqlite')
})
it.after(({ bed }) => bed.close())

/** A promise and the function that fulfils it. */
const gate = () => Promise.withResolvers<void>()

/** Woken by the signal `work`, and otherwise after a minute. */
const begin = ({ platform }: Testbed, run: () => Promise<number>, more: Partial<LoopWork> = {}) =>
  new Loop(platform, { name: 'test', signals: ['work'], run, longestSleepMs: 60_000, ...more })

it('runs again immediately while there is work, and then on a signal', async ({ bed }) => {
  const left = [3, 2, 0]
  const idle = gate()
  const woken = gate()
  const loop = begin(bed, async () => {
    const done = left.shift()
    if (done === 0) idle.resolve()
    if (done === undefined) woken.resolve()
    return done ?? 0
  })
  await idle.promise
  bed.platform.topics.send('work')
  await woken.promise
  await loop.stop()
})

it('misses no signal during a run, and never runs twice at a time', async ({ bed }) => {
  let running = 0
  let runs = 0
  const again = gate()
  const loop = begin(bed, async () => {
    assert.is(running, 0)
    running += 1
    runs += 1
    if (runs === 1) for (const _ of [1, 2, 3]) bed.platform.topics.send('work')
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    if (runs === 2) again.resolve()
    return 0
  })
  await again.promise
  await loop.stop()
  assert.is(runs, 2)
})

it('sleeps until work is due', async ({ bed }) => {
  const second = gate()
  let runs = 0
  const run = async () => {
    runs += 1
    if (runs === 2) second.resolve()
    return 0
  }
  const loop = begin(bed, run, { signals: [], nextDueAt: async () => bed.clock.now() + 5 })
  await second.promise
  await loop.stop()
})

it('continues after an error, and waits for the run under way when it is stopped', async ({ bed }) => {
  const started = gate()
  const finish = gate()
  let finished = false
  const loop = begin(bed, async () => {
    if (!finished) started.resolve()
    await finish.promise
    finished = true
    throw new Error('on purpose')
  })
  await started.promise
  const stopped = loop.stop()
  finish.resolve()
  await stopped
  assert.ok(finished)
})

it.run()
