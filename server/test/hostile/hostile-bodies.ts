import { MAX_JSON_TOKENS } from '../../platform/bounded-json.ts'
import { fc } from '../testkit/property.ts'

/** What the webhooks accept at most. */
const BYTES = 2 * 1024 * 1024

/** The id of Shopify's own test notification: above 2^53. */
const LONG_ID = '820982911946154508'

export interface HostileBody {
  shape: string
  body: Buffer
}

/** `begin`, as many items as fit into `bytes` with commas between them, and `end`. */
function filled(begin: string, item: (index: number) => string, end: string, bytes: number): Buffer {
  const parts: string[] = []
  let size = Buffer.byteLength(begin) + Buffer.byteLength(end)
  for (let index = 0; ; index += 1) {
    const part = index === 0 ? item(index) : `,${item(index)}`
    size += Buffer.byteLength(part)
    if (size > bytes) return Buffer.from(`${begin}${parts.join('')}${end}`)
    parts.push(part)
  }
}

/** A line that can be read, with as little as that takes. */
const line = (index: number) =>
  `{"id":${index},"quantity":1,"price":"10.00","product_id":${10 ** 12 + index}}`
const ORDER = `"id":${LONG_ID},"created_at":"2026-11-20T17:30:00+05:00","currency":"PKR","financial_status":"paid"`

type Shape = (bytes: number) => Buffer

const list =
  (item: (index: number) => string): Shape =>
  (bytes) =>
    filled(`{"id":${LONG_ID},"x":[`, item, ']}', bytes)

const object =
  (item: (index: number) => string): Shape =>
  (bytes) =>
    filled(`{"id":${LONG_ID},"x":{`, item, '}}', bytes)

const text =
  (unit: string): Shape =>
  (bytes) =>
    Buffer.from(`{"id":${LONG_ID},"x":"${unit.repeat((bytes - 40) / Buffer.byteLength(unit))}"}`)

const order =
  (fields: string): Shape =>
  (bytes) => {
    const around = `{${ORDER},"line_items":[${line(1)}],${fields}}`
    return Buffer.from(around.replace('@', () => 'x&'.repeat((bytes - around.length) / 2)))
  }

/** An item has at most six tokens. */
const MOST_ITEMS = Math.floor((MAX_JSON_TOKENS - 100) / 6)

/** So many items, then one text that fills the body up: below the bound on tokens everything is parsed. */
const few =
  (shape: (item: (index: number) => string) => Shape, item: (index: number) => string): Shape =>
  (bytes) => {
    const begin = shape(item)(bytes).toString()
    const cut = begin.split(',').slice(0, MOST_ITEMS).join(',')
    const tail = cut.startsWith(`{"id":${LONG_ID},"x":[`) ? ']' : '}'
    const filler = Math.max(0, bytes - cut.length - 10)
    return Buffer.from(`${cut}${tail},"y":"${'y'.repeat(filler)}"}`)
  }

/** 2 MiB in the shapes that cost most: many tokens, few long ones, keys that make objects slow, fields that are read further. */
export const SHAPES: Record<string, Shape> = {
  'small objects': list(() => '{}'),
  'small lists': list(() => '[]'),
  'objects with one key each': list((index) => `{"k${index}":1}`),
  'objects with one key each, below the bound': few(list, (index) => `{"k${index}":1}`),
  'many keys': object((index) => `"key${index}":1`),
  'many keys, below the bound': few(object, (index) => `"a longer key ${index}":1`),
  'one key repeated': object(() => '"k":1'),
  'keys like array indexes': object((index) => `"${index * 40_000}":1`),
  'keys like large indexes, below the bound': few(
    object,
    (index) => `"${4_294_967_296 + index * 2 ** 18}":1`,
  ),
  'long integers': list(() => LONG_ID),
  'long integers, below the bound': few(list, (index) => `${LONG_ID}${index}`),
  'one long integer': (bytes) => Buffer.from(`{"id":${'1'.repeat(bytes - 10)}}`),
  'one long fraction': (bytes) => Buffer.from(`{"id":${LONG_ID},"x":0.${'1'.repeat(bytes - 40)}}`),
  exponents: list((index) => `1.5e-30${index % 10}`),
  'escaped quotes': text('\\"'),
  'escaped letters': text('\\u0627'),
  'letters of two bytes': text('ا'),
  'short texts': list((index) => `"s${index}"`),
  'short texts with escapes, below the bound': few(list, (index) => `"\\n${index}"`),
  'deep lists': (bytes) => Buffer.from('['.repeat(bytes / 2) + ']'.repeat(bytes / 2)),
  'deep objects': (bytes) => Buffer.from('{"a":'.repeat(bytes / 6) + '1'.padEnd(bytes / 6 + 1, '}')),
  'broken off': (bytes) => Buffer.from(`{"id":${LONG_ID},"x":"${'x'.repeat(bytes - 40)}`),
  'no UTF-8': (bytes) => Buffer.alloc(bytes, 0xff),
  'white space': (bytes) => Buffer.from(`{"id":${LONG_ID}${' '.repeat(bytes - 30)}}`),
  'a thousand lines': (bytes) => {
    const lines = Array.from({ length: 1000 }, (_, index) => line(index)).join(',')
    const title = 'x'.repeat(Math.max(0, bytes - lines.length - 200))
    return Buffer.from(`{${ORDER},"name":"${title}","line_items":[${lines}]}`)
  },
  'a landing site of a million parameters': order('"landing_site":"/?@"'),
  'a long e-mail': order('"email":"@"'),
  'a long note attribute': order('"note_attributes":[{"name":"aff_ref","value":"@"}]'),
}

export function hostileBodies(): HostileBody[] {
  return Object.entries(SHAPES).map(([shape, make]) => ({ shape, body: make(BYTES) }))
}

const UNITS = [
  '{}',
  '[]',
  '1',
  '""',
  'null',
  '{"a":1}',
  '[1]',
  '1e5',
  '-1.5',
  LONG_ID,
  '"\\u0041"',
  '"\\\\"',
] as const

/** JSON of about 2 MiB, of a few units mixed, in lists or objects, nested in one another; cut off at times. */
export const generatedBody: fc.Arbitrary<HostileBody> = fc
  .record({
    units: fc.array(fc.oneof(fc.constantFrom(...UNITS), fc.json({ maxDepth: 3 })), {
      minLength: 1,
      maxLength: 5,
    }),
    key: fc.constantFrom(null, 'k', '', '1', 'a key of some length '),
    padding: fc.constantFrom(0, 0, 3, 20, 1000),
    bytes: fc.constantFrom(BYTES, BYTES, 300_000),
    cut: fc.constantFrom(0, 0, 0, 1, 1000),
  })
  .map(({ units, key, padding, bytes, cut }) => {
    const item = (index: number) => {
      const unit = `${' '.repeat(padding)}${units[index % units.length]}`
      return key === null ? unit : `"${key}${index % (index % 3 === 0 ? 7 : 1_000_000)}":${unit}`
    }
    const body = (key === null ? list : object)(item)(bytes)
    return {
      shape: JSON.stringify({ units, key, padding, bytes, cut }),
      body: body.subarray(0, body.length - cut),
    }
  })
