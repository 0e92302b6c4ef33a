import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { HttpApp } from './context.ts'
import { etagOf, sendPage } from './pages.ts'
import { setShortHeaders } from './security-headers.ts'

/** Beside the sources and in `dist/` alike. */
const MINIFIED = new URL('../../shared/store-script/store.min.js', import.meta.url)

/** Any store may load the script, with `crossorigin` and `integrity` too. */
const HEADERS = {
  'access-control-allow-origin': '*',
  'cache-control': 'public, max-age=3600',
  'content-type': 'text/javascript; charset=utf-8',
  'cross-origin-resource-policy': 'cross-origin',
}

/**
 * `GET /store.js`: the script for a store's theme, from memory. It has no rate limit: a mobile network's many visitors share one
 * address.
 */
export function registerStoreScript(server: FastifyInstance, { platform }: Pick<HttpApp, 'platform'>): void {
  const plain = Buffer.from(
    readFileSync(MINIFIED, 'utf8').replace('TRACKING_PARAMETER', platform.config.TRACKING_PARAMETER),
  )
  const script = { plain, zipped: gzipSync(plain, { level: 9 }), etag: etagOf(plain) }
  server.get('/store.js', async (request, reply) => {
    setShortHeaders(request, reply).headers(HEADERS)
    return sendPage(request, reply, script)
  })
}
