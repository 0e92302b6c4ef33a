import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readAhead } from './read-ahead.ts'

const PAGE = 3

/** Numbers up to `last` in pages, and the keys behind which they were asked for. */
function numbersTo(last: number) {
  const asked: (number | null)[] = []
  let open = 0
  const read = async (after: number | null) => {
    asked.push(after)
    open += 1
    await Promise.resolve()
    open -= 1
    const start = (after ?? 0) + 1
    return Array.from({ length: Math.max(0, Math.min(PAGE, last - start + 1)) }, (_, index) => start + index)
  }
  return { read, asked, open: () => open }
}

const itself = (number: number) => number

const it = suite('pages that are read ahead')

it('come whole and in order, whether or not the last one is full', async () => {
  for (const last of [0, 1, 3, 7, 9]) {
    const { read, asked } = numbersTo(last)
    const pages: number[][] = []
    for await (const page of readAhead(null, read, itself)) pages.push(page)
    assert.equal(
      pages.flat(),
      Array.from({ length: last }, (_, index) => index + 1),
    )
    assert.is(asked.length, Math.ceil(last / PAGE) + 1)
  }
})

it('begin behind the first key, and are asked for before the one in hand is done', async () => {
  const { read, asked } = numbersTo(9)
  const askedWhen: (number | null)[][] = []
  for await (const [first] of readAhead(4, read, itself)) {
    assert.ok(first)
    askedWhen.push([...asked])
  }
  assert.equal(askedWhen, [
    [4, 7],
    [4, 7, 9],
  ])
})

it('leave no question open when somebody has seen enough', async () => {
  const { read, asked, open } = numbersTo(9)
  for await (const page of readAhead(null, read, itself)) {
    assert.equal(page, [1, 2, 3])
    break
  }
  assert.equal(asked, [null, 3])
  assert.is(open(), 0)
})

it('fail with what the reading failed with', async () => {
  const { read } = numbersTo(9)
  const failing = (after: number | null) => (after === 6 ? Promise.reject(new Error('lost')) : read(after))
  const seen: number[] = []
  const error = await (async () => {
    for await (const page of readAhead(null, failing, itself)) seen.push(...page)
  })().catch((reason: unknown) => reason)
  assert.match(String(error), 'lost')
  assert.equal(seen, [1, 2, 3, 4, 5, 6])
})

it.run()
