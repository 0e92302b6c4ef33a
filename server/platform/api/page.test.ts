// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { fc } from '../../test/testkit/property.ts'
import { decodeCursor, encodeCursor, mapPage, pageOf } from './page.ts'
import { Refusal } from './refusal.ts'

test('a cursor comes back as the key that it was made of', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer(), (text, number) => {
      const key = z.tuple([z.string(), z.int()])
      assert.equal(decodeCursor(encodeCursor([text, number]), key), [text, number])
    }),
    { numRuns: 300 },
  )
  assert.is(decodeCursor(undefined, z.string()), null)
})

test('refuses what is no cursor of the list', () => {
  const isAboutCursor = (error: unknown) =>
    error instanceof Refusal && error.code === 'validation_failed' && error.issues?.[0]?.path === 'cursor'
  const key = z.object({ id: z.uuid() })
  const refused = fc.property(fc.string(), (text) =>
    assert.throws(() => decodeCursor(text, key), isAboutCursor),
  )
  fc.assert(refused, { numRuns: 300 })
})

test('pages of any size show every row once, in order', () => {
  fc.assert(
    fc.property(fc.nat({ max: 60 }), fc.integer({ min: 1, max: 20 }), (size, limit) => {
      const rows = Array.from({ length: size }, (_, index) => index)
      const seen: number[] = []
      let after = -1
      for (;;) {
        // What a store does: rows past the key, one more than asked for.
        const found = rows.filter((row) => row > after).slice(0, limit + 1)
        const page = pageOf(found, limit, encodeCursor)
        assert.ok(page.items.length <= limit)
        seen.push(...page.items)
        if (page.next_cursor === null) break
        after = decodeCursor(page.next_cursor, z.int()) ?? -1
      }
      assert.equal(seen, rows)
    }),
    { numRuns: 200 },
  )
})

test('keeps the cursor when the items change their shape', () => {
  const page = mapPage({ items: [1, 2], next_cursor: 'x' }, (item) => `${item}`)
  assert.equal(page, { items: ['1', '2'], next_cursor: 'x' })
})

test.run()
