import { either, fc } from '../testkit/property.ts'
import type { Targets } from './fuzzed-service.ts'

const REQUEST_LINES = [
  'GET /offers HTTP/1.1',
  'POST /auth/login HTTP/1.1',
  'POST /webhooks/store-sales HTTP/1.1',
  'POST /trpc/offers.create HTTP/1.1',
  'GET /offers HTTP/1.0',
  'GET /offers HTTP/2.0',
  'GET /offers',
  'get /offers HTTP/1.1',
  'GET http://evil.example/offers HTTP/1.1',
  'CONNECT evil.example:443 HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'GET offers HTTP/1.1',
  'GET  /offers  HTTP/1.1',
  'GET /\u0080\u00ff HTTP/1.1',
  'GET /go/\0 HTTP/1.1',
  'PRI * HTTP/2.0',
  'BREW /pot HTTP/1.1',
  '',
  '\x16\x03\x01\x02\x00',
  `GET /${'a'.repeat(20_000)} HTTP/1.1`,
]

const HEADERS = [
  'Host: a',
  'Host: a\r\nHost: b',
  'Host: ',
  'Content-Length: 2',
  'Content-Length: 0',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 300000',
  'Content-Length: 3000000000',
  'Content-Length: 2\r\nContent-Length: 3',
  'Content-Length: 2, 2',
  'Content-Length: +2',
  'Content-Length: 0x2',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 2',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: \x0bchunked',
  'Transfer-Encoding : chunked',
  'Content-Type: application/json',
  'Content-Type: application/json\r\nContent-Type: text/plain',
  'Content-Encoding: gzip',
  'Expect: 100-continue',
  'Expect: nonsense',
  'Connection: close',
  'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__',
  'Trailer: x',
  'Authorization: Bearer \xff\xfe',
  ' folded: header',
  'no colon',
  ': no name',
  'a\0b: c',
  `X: ${'x'.repeat(20_000)}`,
  ...['__proto__', 'constructor', 'toString'].map((name) => `${name}: 1`),
]

const BODIES = [
  '',
  '{}',
  '{"email":"a@example.pk","password":"x"}',
  '2\r\n{}\r\n0\r\n\r\n',
  '2;ext=1\r\n{}\r\n0\r\nTrailer: 1\r\n\r\n',
  'ffffffffffffffff\r\n{}',
  '-1\r\n',
  'z\r\n{}\r\n',
  '2\n{}\n0\n\n',
  '0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n',
  '{}GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
]

/** Bytes that are a request, nearly one, several, or nothing of the kind. */
export function rawRequest({ tokens }: Targets): fc.Arbitrary<Buffer> {
  const built = fc
    .record({
      line: fc.constantFrom(...REQUEST_LINES),
      headers: fc.array(fc.constantFrom(...HEADERS), { maxLength: 5 }),
      token: fc.boolean(),
      body: fc.constantFrom(...BODIES),
      newline: either([9, fc.constant('\r\n')], [1, fc.constantFrom('\n', '\r', '\r\n\r\n')]),
      cut: either([4, fc.constant(null)], [1, fc.nat(300)]),
    })
    .map(({ line, headers, token, body, newline, cut }) => {
      const lines = [line, ...headers, ...(token ? [`Authorization: ${tokens.merchant}`] : [])]
      const bytes = Buffer.from(`${lines.join(newline)}${newline}${newline}${body}`, 'latin1')
      return cut === null ? bytes : bytes.subarray(0, cut)
    })
  const noise = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))
  return either([12, built], [1, noise])
}
