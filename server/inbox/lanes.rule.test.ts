// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { shareOut } from './lanes.rule.ts'

const it = suite('sharing stores out to lanes')

it('gives each about as much to do, and every store to one of them', () => {
  const waiting = [5, 90, 10, 40, 30, 25].map((events, index) => ({ scope: `store ${index}`, events }))
  assert.equal(shareOut(waiting, 2), [
    ['store 1', 'store 2'],
    ['store 3', 'store 4', 'store 5', 'store 0'],
  ])
})

it('makes no lane with nothing in it', () => {
  assert.equal(shareOut([{ scope: 'the only one', events: 700 }], 2), [['the only one']])
  assert.equal(shareOut([], 2), [])
})

it.run()
