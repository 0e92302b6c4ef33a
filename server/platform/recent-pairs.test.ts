import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../proof/testbed/property.ts'
import { RecentPairs } from './recent-pairs.ts'

const it = suite('recent pairs')

const word = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.record({
  what: fc.constantFrom('get', 'set', 'delete'),
  one: word,
  other: word,
  value: fc.nat(),
})

it('knows what a plain map knows, as long as there is room', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pairs = new RecentPairs<number>(60)
      const plain = new Map<string, number>()
      for (const { what, one, other, value } of steps) {
        if (what === 'set') plain.set(one + other, value)
        if (what === 'delete') plain.delete(one + other)
        if (what === 'set') pairs.set(one, other, value)
        if (what === 'delete') pairs.delete(one, other)
        assert.is(pairs.get(one, other), plain.get(one + other))
      }
    }),
  )
})

it('keeps the latest, and what is asked for; the rest goes', () => {
  const pairs = new RecentPairs<number>(10)
  pairs.set('kept', 'alive', -1)
  for (let next = 0; next < 1000; next += 1) {
    pairs.set(`link ${next % 3}`, `visitor ${next}`, next)
    assert.is(pairs.get('kept', 'alive'), -1)
  }
  const known = Array.from({ length: 1000 }, (_, next) => pairs.get(`link ${next % 3}`, `visitor ${next}`))
  const kept = known.flatMap((value) => value ?? [])
  assert.ok(kept.length >= 9 && kept.length <= 20, String(kept.length))
})

it('has what was deleted gone, however long it was there', () => {
  const pairs = new RecentPairs<number>(2)
  for (const other of ['first', 'second', 'third']) pairs.set('link', other, 1)
  pairs.delete('link', 'first')
  pairs.delete('link', 'third')
  assert.equal(
    ['first', 'second', 'third'].map((other) => pairs.get('link', other)),
    [undefined, 1, undefined],
  )
})

it.run()
