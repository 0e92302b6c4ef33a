// database: none

import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pluck } from '../../test/testkit/pluck.ts'
import { fc } from '../../test/testkit/property.ts'
import { messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
import { Refusal } from '../api/refusal.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'

type Options = GroupCommitOptions<number, string>

/** A group whose writes end when the test says so. */
function heldGroup(options: Partial<Options> = {}) {
  const writes: { items: number[]; end: (error?: Error) => void }[] = []
  const group = new GroupCommit<number, string>({
    maxBatch: 100,
    maxWaiting: 100,
    timeoutMs: 60_000,
    write: (items) => {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>()
      const answers = items.map((item) => `row ${item}`)
      writes.push({ items, end: (error) => (error ? reject(error) : resolve(answers)) })
      return promise
    },
    ...options,
  })
  return { group, writes }
}

/** Long enough for everything that needs no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Answers with the refusal's code and the seconds to wait. */
async function refusalOf(answer: Promise<unknown>): Promise<unknown[]> {
  const error = (await rejectionOf(answer)) as Refusal
  assert.instance(error, Refusal)
  return [error.code, error.retryAfter]
}
const UNAVAILABLE = ['unavailable', 1]

/** Whether the group is idle by now. */
async function isIdle(group: GroupCommit<number, string>): Promise<boolean> {
  let idle = false
  group.idle().then(() => {
    idle = true
  })
  await settle()
  return idle
}

const it = suite('group commit')

it('writes what one turn of the event loop asks for as one batch, one at a time, and answers each its own', async () => {
  const { group, writes } = heldGroup()
  const first = [group.add(1), group.add(2)]
  await settle()
  const rest = [group.add(3), group.add(4), group.add(5)]
  await settle()
  assert.equal(pluck(writes, 'items'), [[1, 2]])
  writes[0]?.end()
  assert.equal(await Promise.all(first), ['row 1', 'row 2'])
  await settle()
  assert.equal(writes[1]?.items, [3, 4, 5])
  writes[1]?.end()
  assert.equal(await Promise.all(rest), ['row 3', 'row 4', 'row 5'])
})

it('times out the items of every write, and is idle when all writes have ended', async () => {
  const { group, writes } = heldGroup({ concurrency: 2, timeoutMs: 20 })
  const refused = [refusalOf(group.add(1))]
  await settle()
  refused.push(refusalOf(group.add(2)), refusalOf(group.add(3)))
  await settle()
  assert.is(writes.length, 2)
  assert.equal(await Promise.all(refused), Array(3).fill(UNAVAILABLE))
  writes[0]?.end()
  assert.not.ok(await isIdle(group))
  writes[1]?.end(new Error('too late to matter'))
  assert.ok(await isIdle(group))
})

it('bounds a write, and what waits, by bytes as well', async () => {
  const { group, writes } = heldGroup({ bytesOf: (item) => item, maxBatchBytes: 10, maxWaitingBytes: 40 })
  const answers = Promise.all([4, 6, 1, 12, 3].map((item) => group.add(item)))
  assert.equal(await refusalOf(group.add(20)), UNAVAILABLE)
  for (let write = 0; write < 4; write += 1) {
    await settle()
    writes[write]?.end()
  }
  assert.is((await answers).length, 5)
  assert.equal(pluck(writes, 'items'), [[4, 6], [1], [12], [3]])
  const last = group.add(40)
  await settle()
  writes[4]?.end()
  assert.is(await last, 'row 40')
})

it('survives a write that throws synchronously', async () => {
  const write = () => {
    throw new Error('closed')
  }
  const { group } = heldGroup({ write })
  assert.is(await messageOf(group.add(1)), 'closed')
  await group.idle()
})

it('refuses at once when too much waits, and takes more when it is less again', async () => {
  const { group, writes } = heldGroup({ maxWaiting: 2 })
  const written = [group.add(1), group.add(2)]
  assert.equal(await refusalOf(group.add(3)), UNAVAILABLE)
  await settle()
  const later = group.add(4)
  writes[0]?.end()
  await Promise.all(written)
  await settle()
  assert.equal(writes[1]?.items, [4])
  writes[1]?.end()
  assert.is(await later, 'row 4')
})

it('times out; an item that no write had taken yet is never written', async () => {
  const { group, writes } = heldGroup({ timeoutMs: 20 })
  const inFlight = refusalOf(group.add(1))
  await settle()
  const waiting = refusalOf(group.add(2))
  assert.equal(await Promise.all([inFlight, waiting]), [UNAVAILABLE, UNAVAILABLE])
  const next = group.add(3)
  writes[0]?.end()
  await settle()
  assert.equal(writes[1]?.items, [3])
  writes[1]?.end()
  assert.is(await next, 'row 3')
  await group.idle()
  assert.is(writes.length, 2)
})

it('is idle when nothing waits', async () => {
  const { group, writes } = heldGroup()
  assert.ok(await isIdle(group))
  const answer = group.add(1)
  assert.not.ok(await isIdle(group))
  writes[0]?.end()
  await answer
  assert.ok(await isIdle(group))
})

it('in every order of arrivals and writes, settles each item once, within the limits of batches and writes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      async (scheduler, fails, maxBatch, concurrency) => {
        const written: number[] = []
        let inFlight = 0
        const write = scheduler.scheduleFunction(async (items: number[]) => {
          inFlight -= 1
          const poisoned = items.find((item) => fails[item])
          if (poisoned !== undefined) throw new Error(`batch ${items.join()}`)
          written.push(...items)
          return items.map((item) => `row ${item}`)
        })
        const group = new GroupCommit<number, string>({
          maxBatch,
          maxWaiting: 100,
          timeoutMs: 60_000,
          concurrency,
          write: (items) => {
            inFlight += 1
            assert.ok(inFlight <= concurrency, `${inFlight} writes in flight`)
            assert.ok(items.length >= 1 && items.length <= maxBatch)
            return write(items)
          },
        })
        const answers = fails.map(async (_, item) => {
          await scheduler.schedule(Promise.resolve())
          return group.add(item).catch((error: Error) => error.message)
        })
        const all = Promise.all(answers)
        await scheduler.waitFor(all)
        for (const [item, answer] of (await all).entries()) {
          if (written.includes(item)) assert.is(answer, `row ${item}`)
          else assert.ok(answer.slice('batch '.length).split(',').includes(String(item)), answer)
        }
        assert.is(new Set(written).size, written.length)
        await group.idle()
      },
    ),
    { numRuns: 200 },
  )
})

it.run()
