import { either, fc } from '../testkit/property.ts'
import { badName, badString } from './hostile.ts'

const CONTENT_TYPES = [
  'application/json; charset=utf-8',
  'application/json;charset="UTF8"',
  'application/json; charset=utf-16le',
  'application/json; charset=',
  'application/json; boundary=x; charset=latin1',
  'APPLICATION/JSON',
  'application/problem+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=x',
  'text/plain',
  'application/octet-stream',
  '*/*',
  '/',
  ';',
  'a'.repeat(500),
]

const ODD_HEADERS: Record<string, readonly string[]> = {
  accept: ['*/*', 'text/html', 'application/xml;q=2', ';', 'text/event-stream'],
  'accept-encoding': ['gzip, br', 'gzip;q=0', '*', 'identity;q=0, *;q=0'],
  'content-encoding': ['gzip', 'deflate', 'br', 'identity', 'nonsense'],
  'trpc-accept': ['application/jsonl', 'text/event-stream', 'nonsense'],
  'idempotency-key': ['', 'one', 'two', 'x'.repeat(64), 'x'.repeat(65), '\u00e9', '{}'],
  'last-event-id': ['0', '-1', 'x'.repeat(2000), '../'],
  'x-forwarded-for': ['127.0.0.1', '::1, 10.0.0.1', 'x'.repeat(1000), ','],
  'x-forwarded-host': ['evil.example', 'a b'],
  'x-http-method-override': ['DELETE'],
  'x-request-id': ['x'.repeat(3000), '{}'],
  cookie: ['a=b; a=c', '=;=;', 'x'.repeat(5000)],
  origin: ['null', 'https://evil.example', 'file://'],
  range: ['bytes=0-0', 'bytes=-1', 'bytes=9-1'],
  'if-none-match': ['*', 'W/"x"'],
  'if-match': ['*'],
  prefer: ['respond-async'],
  purpose: ['prefetch'],
  'user-agent': ['', 'Googlebot/2.1', 'x'.repeat(5000)],
  forwarded: ['for="[::1]";proto=https', 'for=;;;'],
  authorization: [
    '',
    'Bearer',
    'Bearer  ',
    'Bearer ..',
    'Basic Og==',
    `Bearer afk_${'x'.repeat(43)}`,
    'bearer \u00ff',
    `Bearer ${'x'.repeat(5000)}`,
  ],
}

const oddHeader = fc
  .constantFrom(...Object.entries(ODD_HEADERS))
  .chain(([name, values]) => fc.constantFrom(...values).map((value) => ({ [name]: value })))

/** Mostly none. */
export const oddHeaders = either(
  [5, fc.constant({})],
  [2, oddHeader],
  [1, fc.tuple(oddHeader, oddHeader).map(([one, two]) => ({ ...one, ...two }))],
)

export const contentType = either(
  [12, fc.constant('application/json')],
  [2, fc.constantFrom(...CONTENT_TYPES)],
)

export const rawBytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(
    Buffer.from('\ufeff{}'),
    Buffer.from('{}', 'utf16le'),
    Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from('{"a":'),
    Buffer.from('{}{}'),
    Buffer.from("{'a':1}"),
    Buffer.from('{"a":NaN}'),
    Buffer.from('\0'),
    Buffer.alloc(0),
    Buffer.alloc(260 * 1024, 0x20),
  ),
)

/** A text in a path or a query: as it should be written, or not. */
export const segment = (text: string) => encodeURIComponent(text.toWellFormed())
export const badSegment = either(
  [3, badString.map((text) => segment(text).slice(0, 6000))],
  [1, fc.constantFrom(...'% %zz %ff %00 %c0%ae .. . %2e%2e%2f * :id // [object%20Object]'.split(' '))],
)

export const badQuery = fc.oneof(
  fc.constantFrom(
    ...'& = &&== % %zz=%ff __proto__=1 __proto__[role]=admin constructor.prototype=1'.split(' '),
    ...'limit=1&limit=2 limit[]=1 a=1;b=2 batch=1 input= input=%00'.split(' '),
  ),
  fc
    .tuple(badName, badString)
    .map(([name, value]) => `${segment(name).slice(0, 2000)}=${segment(value).slice(0, 5000)}`),
)
