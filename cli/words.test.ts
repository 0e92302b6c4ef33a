// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { didYouMean, nearestWord } from '../server/platform/nearest-word.ts'
import { durationText, sparkline } from './terminal/output.ts'

test('the nearest word is found, and none where nothing is near', () => {
  const words = ['list', 'resolve', 'walk', 'create-admin']
  assert.is(nearestWord('lst', words), 'list')
  assert.is(nearestWord('lsit', words), 'list')
  assert.is(nearestWord('RESOLV', words), 'resolve')
  assert.is(nearestWord('create_admin', words), 'create-admin')
  assert.is(nearestWord('payments', words), null)
  assert.is(nearestWord('', words), null)
  assert.is(nearestWord('list', []), null)
  assert.equal([didYouMean('wlak', words), didYouMean('zzzz', words)], [' Did you mean walk?', ''])
})

test('a chart has one sign a number, and nothing looks like nothing', () => {
  assert.is(sparkline([0, 1, 4, 8]), '·▁▄█')
  assert.is(sparkline([0, 0]), '··')
  assert.is(sparkline([1_000_000, 1]), '█▁')
  assert.is(sparkline([]), '')
})

test('durations in their greatest unit', () => {
  const of = (ms: number) => durationText(ms)
  assert.equal(
    [of(7), of(999), of(40_000), of(720_000), of(5 * 3_600_000), of(3 * 86_400_000), of(-5)],
    ['7 ms', '999 ms', '40 s', '12 min', '5 h', '3 d', '0 ms'],
  )
})

test.run()
