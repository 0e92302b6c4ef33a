import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../platform/refusal.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Refuses with `unsupported_media_type` a charset that is not UTF-8: RFC 8259 knows no other. */
function checkCharset(contentType: string | undefined): void {
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType ?? '')?.[1]
  if (charset === undefined || /^utf-?8$/i.test(charset)) return
  throw new Refusal('unsupported_media_type', 'The body must be application/json in UTF-8.')
}

/** Refuses with `unsupported_media_type` a body that is compressed: its limit would say nothing of its size. */
function checkCoding(coding: string | undefined): void {
  if (coding === undefined || /^\s*(identity)?\s*$/i.test(coding)) return
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
 * Lets a scope of the server take JSON bodies and nothing else; an empty body is `undefined`. With `parsed: false` the
 * handler is given the text.
 */
export function acceptJson(scope: FastifyInstance, options: { parsed: boolean }): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      checkCharset(request.headers['content-type'])
      checkCoding(request.headers['content-encoding'])
      const text = decode(body)
      if (!options.parsed) return text
      return text.trim() === '' ? undefined : parse(text)
    },
  )
}
