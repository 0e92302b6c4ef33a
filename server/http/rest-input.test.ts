// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { fc } from '../test/testkit/property.ts'
import { coerceText, type JsonSchema } from './rest-input.ts'

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as JsonSchema
const INTEGER = schemaOf(z.int())
const NUMBER = schemaOf(z.number())
const BOOLEAN = schemaOf(z.boolean())
const TEXT = schemaOf(z.string())

test('reads whole numbers that are written plainly', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), (value) => {
      assert.is(coerceText(String(value), INTEGER), value === 0 ? 0 : value)
      assert.is(coerceText(String(value), NUMBER), value === 0 ? 0 : value)
      assert.is(coerceText(String(value), TEXT), String(value))
    }),
    { numRuns: 300 },
  )
})

test('either converts a text to what it says, or leaves it', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      for (const schema of [INTEGER, NUMBER, BOOLEAN, TEXT]) {
        const value = coerceText(text, schema)
        if (value === text) continue
        assert.ok(typeof value === 'boolean' ? String(value) === text : Number(text) === value)
      }
    }),
    { numRuns: 1000 },
  )
})

test('leaves what only JavaScript would take for a number', () => {
  for (const text of [
    '',
    ' ',
    '1 ',
    '9'.repeat(16),
    ...'+1 0x10 1e3 Infinity NaN 1_000 .5 5. ٣'.split(' '),
  ]) {
    assert.is(coerceText(text, NUMBER), text)
    assert.is(coerceText(text, INTEGER), text)
  }
  assert.is(coerceText('1.5', INTEGER), '1.5')
  assert.is(coerceText('-0.25', NUMBER), -0.25)
})

test('looks through optional, nullable and default', () => {
  assert.is(coerceText('3', schemaOf(z.int().nullable())), 3)
  assert.is(coerceText('3', schemaOf(z.int().min(1).default(25))), 3)
  assert.is(coerceText('true', schemaOf(z.boolean().nullable().default(null))), true)
  assert.is(coerceText('3', schemaOf(z.union([z.int(), z.string()]))), '3', 'a choice is not ours to make')
})

test('makes lists by repetition, and leaves repetition where no list is wanted', () => {
  const list = schemaOf(z.array(z.int()))
  assert.equal(coerceText('1', list), [1])
  assert.equal(coerceText(['1', 'x'], list), [1, 'x'])
  assert.equal(coerceText(['1', '2'], INTEGER), ['1', '2'])
})

test.run()
