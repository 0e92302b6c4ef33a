import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
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
  const reported: string[] = []
  const progress = (at: number, all: number) => reported.push(`${at} of ${all}`)
  const outcomes = await processInBatches(bed.platform, NUMBERS, 3, work, { progress })
  assert.equal(outcomes, [10, 20, 40, 50, 60, 70])
  assert.equal(asked, [[1, 2, 3], [4, 5, 6], [7]])
  assert.equal(reported, ['1 of 7', '4 of 7', '7 of 7'])
  assert.equal(await processInBatches(bed.platform, [], 3, work), [])
})

it('does a page that fails one by one, and throws the first error at the end', async ({ bed }) => {
  const { asked, work } = multiplier([5, 7])
  assert.is(await messageOf(processInBatches(bed.platform, NUMBERS, 3, work)), '5 on purpose')
  // One on its own is not tried a second time.
  assert.equal(asked, [[1, 2, 3], [4, 5, 6], [4], [5], [6], [7]])
})

it('ends at once when the database is gone', async ({ bed }) => {
  // In a page of several, and in one of its own.
  for (const bad of [5, 7]) {
    const { asked, work } = multiplier([bad], GONE)
    assert.is(await rejectionOf(processInBatches(bed.platform, NUMBERS, 3, work)), GONE)
    assert.equal(asked, [[1, 2, 3], [4, 5, 6], [7]].slice(0, bad === 5 ? 2 : 3))
  }
})

it('both go on after a failure, and take what onFailure makes of it', async ({ bed }) => {
  const seen: string[] = []
  const onFailure = async (n: number, error: unknown) => {
    seen.push(String(error))
    return n === 2 ? -n : null
  }
  const work = async (n: number) => {
    if (n % 2 === 0) throw new Error(`${n} on purpose`)
    return n === 5 ? null : n
  }
  const given = [1, 2, 3, 4, 5]
  assert.equal(await forEachIsolated(bed.platform, given, work, { onFailure }), [1, -2, 3])
  const many = async (page: readonly number[]) =>
    (await Promise.all(page.map(work))).filter((n) => n !== null)
  assert.equal(await processInBatches(bed.platform, given, 3, many, { onFailure }), [1, -2, 3])
  const once = ['Error: 2 on purpose', 'Error: 4 on purpose']
  assert.equal(seen, [...once, ...once])
})

it.run()
