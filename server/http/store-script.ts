import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { HttpApp } from './context.ts'
import { setShortHeaders } from './security-headers.ts'

/** Beside the sources and in `dist/` alike. */
const MINIFIED = new URL('../../shared/store-script/store.min.js', import.meta.url)

/** Any store may load the script, with `crossorigin` and `integrity` too. */
const HEADERS = {
  'access-control-allow-origin': '*',
  'cache-control': 'public, max-age=3600',
  'content-type': 'text/javascript; charset=utf-8',
  'cross-origin-resource-policy': 'cross-origin',
  vary: 'Accept-Encoding',
}

/**
 * `GET /store.js`: the script for a store's theme, from memory. It has no rate limit: a mobile network's many visitors share one
 * address.
 */
export function registerStoreScript(server: FastifyInstance, { platform }: Pick<HttpApp, 'platform'>): void {
  const plain = Buffer.from(
    readFileSync(MINIFIED, 'utf8').replace('TRACKING_PARAMETER', platform.config.TRACKING_PARAMETER),
  )
  const zipped = gzipSync(plain, { level: 9 })
  // Weak: the same for both encodings.
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  server.get('/store.js', async (request, reply) => {
    setShortHeaders(request, reply).headers(HEADERS).header('etag', etag)
    if (isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send()
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
    return reply.header('content-encoding', 'gzip').send(zipped)
  })
}

/** Whether an `If-None-Match` header names the ETag, by weak comparison. */
function isKnown(etag: string, header = ''): boolean {
  const opaque = etag.replace(/^W\//, '')
  return header.split(',').some((text) => ['*', opaque].includes(text.trim().replace(/^W\//, '')))
}
