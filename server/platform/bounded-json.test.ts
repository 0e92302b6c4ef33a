import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { jsonOrNull } from '../../shared/json.ts'
import { fc } from '../test/testkit/property.ts'
import { MAX_JSON_TOKENS, parseBoundedJson, type SkipsKey, UnreadableJson } from './bounded-json.ts'

const BIG = '820982911946154508'

function refusal(text: string, skips?: SkipsKey): string {
  try {
    parseBoundedJson(text, skips)
    return 'parsed'
  } catch (error) {
    if (error instanceof UnreadableJson) return error.reason
    throw error
  }
}

const it = suite('bounded JSON')

it('keeps the digits of integers above 2^53 - 1, and nothing else', () => {
  const text = `{"a":${BIG}, "b":[ ${BIG} ,9007199254740991,9007199254740992],"c":-${BIG},"d":${BIG}.5,"e":1${'0'.repeat(20)}e2}`
  assert.equal(parseBoundedJson(text), {
    a: BIG,
    b: [BIG, 9007199254740991, '9007199254740992'],
    c: -Number(BIG),
    d: Number(`${BIG}.5`),
    e: 1e22,
  })
  assert.is(parseBoundedJson(BIG), BIG)
  const strings = `{"x":"\\"${BIG},","${BIG}":1,"y":"\\\\"}`
  assert.equal(parseBoundedJson(strings), { x: `"${BIG},`, [BIG]: 1, y: '\\' })
  assert.equal(parseBoundedJson(`{"k":1,"k":${BIG}}`), { k: BIG })
})

it('makes no JSON of what is none', () => {
  const numbers = [`{${BIG}:1}`, `{${BIG} :1}`, `[0${BIG}]`, `[+${BIG}]`, `[- ${BIG}]`, `[${BIG} ${BIG}]`]
  const others = [
    `["a"${BIG}]`,
    `[true${BIG}]`,
    `[1e${BIG}e]`,
    `"${BIG}`,
    '["a\nb"]',
    '[1,]',
    '',
    ' ',
    '\u00a0[]',
  ]
  for (const text of [...numbers, ...others]) {
    assert.is(refusal(text), 'not JSON', text)
  }
})

it('refuses too many tokens and too many levels before it parses', () => {
  // Brackets and commas count as well.
  assert.is(refusal(`[${'1,'.repeat(MAX_JSON_TOKENS / 2 - 2)}1]`), 'parsed')
  assert.is(refusal(`[${'1,'.repeat(MAX_JSON_TOKENS / 2 - 1)}1]`), 'more than 150000 JSON tokens')
  const skipped = (values: number) => refusal(`{"a":[${'1,'.repeat(values - 1)}1]}`, () => true)
  assert.is(skipped(299_999), 'parsed')
  assert.is(skipped(300_000), 'more than 150000 JSON tokens')
  assert.is(refusal(`${'['.repeat(64)}${']'.repeat(64)}`), 'parsed')
  assert.is(refusal(`${'['.repeat(65)}${']'.repeat(65)}`), 'nested deeper than 64 levels')
})

it('agrees with JSON.parse on JSON with integers of any length', () => {
  const whole = fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n })
  const digits = fc.tuple(whole, fc.constantFrom('', '.5', 'e3', 'E-2'))
  const number = digits.map(([value, rest]) => `${value}${rest}`)
  const value = fc.oneof(number, fc.json({ maxDepth: 2 }))
  const entry = fc.tuple(fc.string(), value).map(([key, one]) => `${JSON.stringify(key)} : ${one} `)
  const text = fc.array(entry).map((entries) => `{${entries.join(',\n')}}`)
  fc.assert(
    fc.property(text, (json) => {
      assert.equal(parseBoundedJson(json), JSON.parse(json, keepDigits as never))
    }),
    { numRuns: 300 },
  )
})

it('refuses what JSON.parse refuses, and takes brackets in strings for text', () => {
  const texts = ['['.repeat(500), `\\"${'{'.repeat(500)}`]
  assert.equal(parseBoundedJson(JSON.stringify(texts)), texts)
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.is(refusal(text) === 'parsed', jsonOrNull(text) !== null || text.trim() === 'null')
    }),
    { numRuns: 500 },
  )
})

/** The reviver that defines what is kept: `context.source` is the number as written. */
function keepDigits(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  return source !== undefined && /^\d+$/.test(source) ? source : value
}

it.run()
