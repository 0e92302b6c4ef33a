// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dateOfDay, localDay, offsetsWithin } from './local-days.ts'

const KARACHI = 'Asia/Karachi'
const HOUR = 3_600_000
const at = (text: string) => Date.parse(text)
const dayIn = (text: string, zone: string) => dateOfDay(localDay(at(text), zone))

test('a day begins at midnight of its zone', () => {
  assert.is(dayIn('2026-11-20T18:59:59.999Z', KARACHI), '2026-11-20')
  assert.is(dayIn('2026-11-20T19:00:00Z', KARACHI), '2026-11-21')
  assert.is(dayIn('2026-11-20T18:14:59Z', 'Asia/Kathmandu'), '2026-11-20')
  assert.is(dayIn('2026-11-20T18:15:00Z', 'Asia/Kathmandu'), '2026-11-21')
  assert.is(dayIn('2026-07-01T23:00:00Z', 'Europe/London'), '2026-07-02')
})

test("a zone's offsets change where its clock does", () => {
  assert.equal(offsetsWithin(at('2026-01-01T00:00:00Z'), at('2027-01-01T00:00:00Z'), KARACHI), [
    { since: at('2026-01-01T00:00:00Z'), offset: 5 * HOUR },
  ])
  assert.equal(offsetsWithin(at('2026-01-01T10:00:00Z'), at('2026-12-01T00:00:00Z'), 'Europe/London'), [
    { since: at('2026-01-01T10:00:00Z'), offset: 0 },
    { since: at('2026-03-29T01:00:00Z'), offset: HOUR },
    { since: at('2026-10-25T01:00:00Z'), offset: 0 },
  ])
})

test.run()
