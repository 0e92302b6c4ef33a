// database: none

import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../proof/testbed/property.ts'
import { binaryArray } from './binary-array.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const HEAD_OF_ONE = '00000001 00000000 00000b86 00000001 00000001 00000010'.replaceAll(' ', '')

// That the server reads all of them as they were meant is tested with the insertions.
const it = suite('binary arrays')

it('hold a UUID as its bytes, however it is written', () => {
  const expected = HEAD_OF_ONE + ID.replaceAll('-', '')
  assert.is(binaryArray('uuid', [ID]).toString('hex'), expected)
  assert.is(binaryArray('uuid', [ID.toUpperCase()]).toString('hex'), expected)
})

it('refuse what is no UUID instead of writing another one', () => {
  const wrong = [
    '',
    ID.slice(1),
    `${ID}a`,
    ID.replaceAll('-', ''),
    ID.replace('a', 'g'),
    ID.replace('0', 'ü'),
    ID.replace('0', '𝟎').slice(0, 36),
    ID.replaceAll('-', '0'),
    ID.replace('a', '-'),
  ]
  for (const text of wrong) assert.throws(() => binaryArray('uuid', [text]), /not a UUID/, text)
  fc.assert(
    fc.property(
      fc.uuid(),
      fc.nat({ max: 35 }),
      fc.string({ minLength: 1, maxLength: 1 }),
      (id, at, other) => {
        const text = id.slice(0, at) + other + id.slice(at + 1)
        const write = () => binaryArray('uuid', [text])
        if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) write()
        else assert.throws(write, /not a UUID/, text)
      },
    ),
  )
})

it('refuse a number that its column has no room for', () => {
  assert.throws(() => binaryArray('int', [2 ** 31]))
  assert.throws(() => binaryArray('bigint', [0.5]))
  assert.throws(() => binaryArray('bigint', [2 ** 53]))
})

it('hold every exact whole number as its eight bytes', () => {
  const holds = (value: number) => {
    const expected = Buffer.alloc(8)
    expected.writeBigInt64BE(BigInt(value))
    assert.equal(binaryArray('bigint', [value]).subarray(-8), expected)
  }
  const edges = [0, -0, -1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -(2 ** 31), -(2 ** 32), -(2 ** 32) - 1]
  for (const value of [...edges, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) holds(value)
  fc.assert(fc.property(fc.maxSafeInteger(), holds))
})

it.run()
