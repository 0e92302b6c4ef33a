// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { monthsFrom } from './click-months.rule.ts'

const at = (text: string) => Date.parse(text)

test('months are named by their year and follow each other without a gap, over the turn of a year too', () => {
  const months = monthsFrom(at('2026-11-30T23:59:59.999Z'), 2)
  assert.equal(
    months.map(({ table }) => table),
    ['clicks_2026_11', 'clicks_2026_12', 'clicks_2027_01'],
  )
  assert.is(months[0]?.end, months[1]?.start)
  assert.is(months[1]?.end, months[2]?.start)
})

test('every moment lies in its month, and in no other', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: at('2020-01-01T00:00:00Z'), max: at('2090-01-01T00:00:00Z') }),
      (moment) => {
        const [month, next] = monthsFrom(moment, 1)
        assert.ok(month && next && month.start <= moment && moment < month.end)
        assert.is(
          month.table.slice('clicks_'.length),
          new Date(moment).toISOString().slice(0, 7).replace('-', '_'),
        )
        assert.is(next.start, month.end)
      },
    ),
  )
})

test.run()
