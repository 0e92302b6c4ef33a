import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { MalformedOrder } from './fields.ts'
import { parseLossless } from './order-facts.ts'

const BIG_ID = '820982911946154508'
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

test('integers above 2^53 come back as digits wherever they stand; every other value as JSON.parse reads it', () => {
  const text = `{"a":[${BIG_ID}, 9007199254740991,9007199254740992,-1,1.5,1e3],"b":{"c":${BIG_ID}},"d":"${BIG_ID}"}`
  assert.equal(parseLossless(text), {
    a: [BIG_ID, 9007199254740991, '9007199254740992', -1, 1.5, 1000],
    b: { c: BIG_ID },
    d: BIG_ID,
  })
})

test('nesting is bounded, on the plain way and on the lossless one', () => {
  for (const id of ['5', BIG_ID]) {
    const body = (levels: number) => `{"id":${id},"x":${nested(levels)}}`
    assert.ok(parseLossless(body(63)))
    for (const levels of [64, 500_000]) {
      assert.throws(() => parseLossless(body(levels)), /nested deeper than 64 levels/)
    }
  }
})

test('brackets inside strings are text, also behind escaped quotes and backslashes', () => {
  const value = { note: `\\"${'['.repeat(500)}\\\\`, other: '{{{"'.repeat(50), last: '\\', deep: [[['x']]] }
  assert.equal(parseLossless(JSON.stringify(value)), value)
  assert.throws(() => parseLossless(`"\\"${'['.repeat(100)}`), /not JSON/)
})

test('agrees with JSON.parse on any JSON without long integers, and refuses what it refuses', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      assert.equal(parseLossless(text), JSON.parse(text, keepDigits))
    }),
    { numRuns: 500 },
  )
  fc.assert(
    fc.property(fc.string(), (text) => {
      const native = outcome(() => JSON.parse(text))
      assert.is(
        outcome(() => parseLossless(text)),
        native,
      )
    }),
    { numRuns: 500 },
  )
})

/** What `parseLossless` promises for one number; fast-check writes the shortest digits, and from 1e21 on an exponent. */
function keepDigits(_key: string, value: unknown): unknown {
  const long = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return long && value > 0 && value < 1e21 ? String(value) : value
}

function outcome(parse: () => unknown): string {
  try {
    return JSON.stringify(parse())
  } catch (error) {
    assert.ok(error instanceof SyntaxError || error instanceof MalformedOrder)
    return 'refused'
  }
}

test.run()
