import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../../test/testkit/property.ts'
import { jsonOf, keepJson } from './kept-json.ts'

const it = suite('kept JSON')

it('property: a page reads as JSON.stringify would write it, whichever of its items are kept', () => {
  const item = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
  const drawn = fc.record({
    items: fc.array(fc.tuple(item, fc.boolean())),
    next_cursor: fc.option(fc.string({ unit: 'binary' })),
  })
  fc.assert(
    fc.property(drawn, ({ items, next_cursor }) => {
      const plain = { items: items.map(([value]) => structuredClone(value)), next_cursor }
      const page = { items: items.map(([value, kept]) => (kept ? keepJson(value) : value)), next_cursor }
      assert.is(jsonOf(page), JSON.stringify(plain))
    }),
  )
})

it('writes everything else as JSON.stringify does, what only looks like a page too', () => {
  const kept = keepJson({ a: 'x' })
  const others = [
    null,
    'x',
    [kept],
    kept,
    { items: [kept] },
    { items: 'x', next_cursor: null },
    { next_cursor: null, items: [kept] },
    { items: [kept], next_cursor: undefined },
    { items: [kept], next_cursor: null, total: 1 },
    { items: [undefined, kept], next_cursor: null },
  ]
  for (const value of others) assert.is(jsonOf(value), JSON.stringify(value))
})

it('keeps only what nobody can change any more', () => {
  const kept: { a: string } = keepJson({ a: 'x' })
  assert.throws(() => {
    kept.a = 'y'
  })
  assert.is(jsonOf({ items: [kept], next_cursor: null }), '{"items":[{"a":"x"}],"next_cursor":null}')
})

it.run()
