import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readAmount, readMoment } from './fields.ts'

test('amounts are decimal strings, and exact: a part of a paisa is kept as text', () => {
  const amounts: [string, number | string][] = [
    ['0', 0],
    ['0.01', 1],
    ['12.3', 1230],
    ['12.345', '1234.5'],
    ['12.3449999999', '1234.49999999'],
    ['0.005', '0.5'],
    ['0.0500', 5],
    ['0012.00', 1200],
    ['99999.995', '9999999.5'],
    ['99999999999.99', 9_999_999_999_999],
  ]
  for (const [text, paisa] of amounts) assert.is(readAmount(text, 'price'), paisa, text)
})

test('what is no decimal amount is refused', () => {
  const texts = ['', '1,000.00', '-1.00', '+1', '1e3', ' 1', '1.', '.5', 'NaN', '٣', '100000000000.00', '1\n']
  for (const value of [...texts, 12.5, 100, null, undefined, {}]) {
    assert.throws(() => readAmount(value, 'price'), /price is no decimal amount/, String(value))
  }
})

test('times carry an offset', () => {
  assert.is(readMoment('2028-02-29T23:59:59+05:00', 'created_at'), Date.UTC(2028, 1, 29, 18, 59, 59))
  assert.is(readMoment('2026-03-01T12:00:00.250-05:00', 'created_at'), Date.UTC(2026, 2, 1, 17, 0, 0, 250))
  assert.is(readMoment('2026-03-01T00:00:00Z', 'created_at'), Date.UTC(2026, 2, 1))
})

test('a time without offset, or one that does not exist, is refused', () => {
  const shapeless = ['2026-03-01', '2026-03-01T12:00:00', 'yesterday', '', 1772308800, null, undefined]
  const impossible = [
    '2026-02-29T00:00:00Z',
    '2026-02-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-03-01T25:00:00Z',
  ]
  for (const value of [...shapeless, ...impossible]) {
    assert.throws(() => readMoment(value, 'created_at'), /created_at is/, String(value))
  }
})

test.run()
