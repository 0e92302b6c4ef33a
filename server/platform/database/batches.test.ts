import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed, type Testbed } from '../../test/testkit/testbed.ts'
import { forEachIsolated, processInBatches } from './batches.ts'

const it = suite<{ bed: Testbed }>('batches')
it.before(async (context) => {
  context.bed = await openTestbed('sqlite')
})
it.after(({ bed }) => bed?.close())

const NUMBERS = [1, 2, 3, 4, 5, 6, 7]
const GONE = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })

/** Multiplies, and keeps which pages it was asked for; a page fails whole when one of `bad` is in it. */
function multiplier(bad: readonly number[], error?: Error) {
  const asked: number[][] = []
  const work = async (page: readonly number[]) => {
    asked.push([...page])
    const first = page.find((n) => bad.includes(n))
    if (first !== undefined) throw error ?? new Error(`${first} on purpose`)
    return page.filter((n) => n !== 3).map((n) => n * 10)
  }
  return { asked, work }
}

it('takes them in pages, answers what came out in order, and tells how far it is', async ({ bed }) => {
  const { asked, work } = multiplier([])
  const reported: [number, number][] = []
  const progress = (at: number, all: number) => reported.push([at, all])
  const outcomes = await processInBatches(bed.platform, NUMBERS, 3, work, { progress })
  assert.equal(outcomes, [10, 20, 40, 50, 60, 70])
  assert.equal(asked, [[1, 2, 3], [4, 5, 6], [7]])
  assert.equal(reported, [
    [1, 7],
    [4, 7],
    [7, 7],
  ])
  assert.equal(await processInBatches(bed.platform, [], 3, work), [])
})

it('does a page that fails one by one, and throws the first error at the end', async ({ bed }) => {
  const { asked, work } = multiplier([5, 7])
  const run = processInBatches(bed.platform, NUMBERS, 3, work)
  assert.match(String(await run.catch((error) => error)), /5 on purpose/)
  // One on its own is not tried a second time.
  assert.equal(asked, [[1, 2, 3], [4, 5, 6], [4], [5], [6], [7]])
})

it('ends at once when the database is gone', async ({ bed }) => {
  for (const [bad, pages] of [
    [
      [5],
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
    ],
    [[7], [[1, 2, 3], [4, 5, 6], [7]]],
  ] as const) {
    const { asked, work } = multiplier(bad, GONE)
    assert.is(await processInBatches(bed.platform, NUMBERS, 3, work).catch((error) => error), GONE)
    assert.equal(asked, pages)
  }
})

it('forEachIsolated returns the outcomes in order, without null', async ({ bed }) => {
  const outcomes = await forEachIsolated(bed.platform, [1, 2, 3], async (n) => (n === 2 ? null : n * 10))
  assert.equal(outcomes, [10, 30])
})

it('both go on after a failure, and take what onFailure makes of it', async ({ bed }) => {
  const seen: string[] = []
  const onFailure = async (n: number, error: unknown) => {
    seen.push(String(error))
    return n === 2 ? -n : null
  }
  const work = async (n: number) => {
    if (n % 2 === 0) throw new Error(`${n} on purpose`)
    return n
  }
  assert.equal(await forEachIsolated(bed.platform, [1, 2, 3, 4], work, { onFailure }), [1, -2, 3])
  const many = (page: readonly number[]) => Promise.all(page.map(work))
  assert.equal(await processInBatches(bed.platform, [1, 2, 3, 4], 3, many, { onFailure }), [1, -2, 3])
  assert.equal(seen, [
    'Error: 2 on purpose',
    'Error: 4 on purpose',
    'Error: 2 on purpose',
    'Error: 4 on purpose',
  ])
})

it.run()
