import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Makes a scope accept JSON bodies only; an empty body is `undefined`. With `parsed: false` handlers get the text. Refuses
 * with `unsupported_media_type` (another charset than UTF-8, or a compressed body) and `malformed_json`.
 */
export function acceptJson(scope: FastifyInstance, options: { parsed: boolean }): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      checkCharset(request.headers['content-type'])
      checkEncoding(request.headers['content-encoding'])
      const text = decode(body)
      if (!options.parsed) return text
      return text.trim() === '' ? undefined : parse(text)
    },
  )
}

/** JSON is UTF-8 (RFC 8259). */
function checkCharset(contentType: string | undefined): void {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new Refusal('unsupported_media_type', 'The body must be application/json in UTF-8.')
}

/** A compressed body could exceed the body limit once it is unpacked. */
function checkEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^\s*(identity)?\s*$/i.test(encoding)) return
  throw new Refusal('unsupported_media_type', 'The body must not be compressed.')
}

function decode(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new Refusal('malformed_json', 'The body is not valid UTF-8.')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal('malformed_json', 'The body is not valid JSON.')
  }
}

/**
 * With `optimizeEmptyRequests`, Node ends the stream of a request without a body before a parser can listen to it. A parser
 * that runs because of the content type would wait forever, so it gets an empty stream instead.
 */
export function endEmptyBodies(server: FastifyInstance): void {
  server.addHook('preParsing', ({ raw: { method, headers } }, _reply, payload, done) => {
    const announced = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    done(null, method === 'GET' || method === 'HEAD' || announced ? payload : Readable.from([]))
  })
}
