import { anyCharacter, either, fc } from '../testkit/property.ts'

const DEEP = 3000
const LONG = 70_000

const words = (text: string) => text.split(' ')

/** Texts that have broken programs before: other scripts, control characters, other languages' syntax, great length. */
const BAD_STRINGS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\u202e\u2066',
  '\ufeff',
  '\ufffd',
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  'کراچی',
  'İstanbul ß ﬁ',
  'e\u0301'.repeat(50),
  "' or 1=1 --",
  '"; drop table users; --',
  '" OR NEAR(',
  '*',
  'a* AND (b',
  "\\'; \\",
  ...words('% %_% %00 ../../etc/passwd {{click}} $1 <script> =1+1 __proto__ constructor hasOwnProperty'),
  ...words('null undefined NaN -1 1e309 0x10 ١٢٣ javascript:alert(1) http://127.0.0.1/'),
  ...words('https://kurta.pk:99999/ https://xn--/ https://a..b/ 2026-02-30T00:00:00Z 2026-11-20T23:59:60Z'),
  ...words('+275760-09-13T00:00:00.001Z 0000-01-01T00:00:00Z 9999-12-31T23:59:59.999999999+14:00'),
  ...words(
    '1970-01-01T00:00:00-23:59 00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff',
  ),
  '\r\nX-Injected: 1',
  `https://${'a'.repeat(300)}.pk/`,
  'x'.repeat(LONG),
  '\ud83d\ude00'.repeat(2000),
]

/** JSON that is right by its grammar and that few expect. */
const BAD_JSON = [
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  ...words('1e999 -1e999 1e-999 -0 0.1 9007199254740993 9223372036854775808'),
  ...words('123456789012345678901234567890 2147483648 -1 0.005 12.345 null true [] {} [[]] [null]'),
  ...words('{"":0} {"__proto__":{"role":"admin"}}'),
  ...words('{"constructor":{"prototype":{"role":"admin"}}} {"length":1e9}'),
  ...words('{"toString":1,"valueOf":2,"toJSON":3} {"then":"now"}'),
  ...words('{"json":{},"meta":{"values":["undefined"]}} {"a":1,"a":2}'),
  `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`,
  `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`,
  `[${'0,'.repeat(5000)}0]`,
]

export const badString: fc.Arbitrary<string> = either(
  [3, fc.constantFrom(...BAD_STRINGS)],
  [1, fc.string({ unit: anyCharacter, maxLength: 60 })],
  [1, fc.string({ unit: 'grapheme', maxLength: 300 })],
)

/** The text of an invalid JSON value. */
export const badJson: fc.Arbitrary<string> = either(
  [3, fc.constantFrom(...BAD_JSON)],
  [3, badString.map((text) => JSON.stringify(text))],
  [1, fc.double().map((value) => JSON.stringify(value))],
  [1, fc.bigInt().map(String)],
  [1, fc.json({ maxDepth: 6 })],
)

export const badName: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('', ...words('__proto__ constructor prototype toString id role a.b a[b] 0 $where input')),
  badString,
)

/** Where in a value something else is put: each number chooses one field or item on the way down. */
export type Place = readonly number[]

export const place: fc.Arbitrary<Place> = fc.array(fc.nat(60), { minLength: 1, maxLength: 5 })

export interface Injection {
  place: Place
  how: 'replace' | 'drop' | 'repeat' | 'wrap'
  /** JSON text. */
  json: string
}

export const injection: fc.Arbitrary<Injection> = fc.record({
  place,
  how: either(
    [4, fc.constant('replace' as const)],
    [1, fc.constantFrom('drop' as const, 'repeat' as const, 'wrap' as const)],
  ),
  json: badJson,
})

/**
 * The value as JSON text with one place in it changed: replaced by other JSON, dropped, given twice under one name, or
 * wrapped in a list.
 */
export function inject(value: unknown, { place: [step, ...rest], how, json }: Injection): string {
  if (Array.isArray(value) && value.length > 0 && step !== undefined) {
    const parts = value.map((item) => JSON.stringify(item))
    const at = step % value.length
    parts[at] = inject(value[at], { place: rest, how, json })
    return `[${parts.filter((part) => part !== '').join()}]`
  }
  if (typeof value === 'object' && value !== null && step !== undefined && Object.keys(value).length > 0) {
    const entries = Object.entries(value)
    const at = step % entries.length
    return `{${entries
      .map(([name, field], n) => member(name, field, n === at ? { place: rest, how, json } : null))
      .filter((part) => part !== '')
      .join()}}`
  }
  if (how === 'drop') return ''
  if (how === 'wrap') return `[${JSON.stringify(value)}]`
  return json
}

function member(name: string, field: unknown, change: Injection | null): string {
  const key = JSON.stringify(name)
  if (!change) return field === undefined ? '' : `${key}:${JSON.stringify(field)}`
  const text = inject(field, change)
  if (text === '') return ''
  return change.how === 'repeat' ? `${key}:${JSON.stringify(field)},${key}:${text}` : `${key}:${text}`
}
