import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PAGE, START, STYLE } from './docs-page.ts'

/** The page loads its own files only; Swagger UI's icons are data: images. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const ASSET_TYPES: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}
const OWN_ASSETS = [
  ['start.js', 'text/javascript; charset=utf-8', START],
  ['style.css', 'text/css; charset=utf-8', STYLE],
] as const
const ASSET_CACHE = 'public, max-age=3600'

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** `GET /`: leads browsers to the API reference; other clients get the addresses. */
export function registerIndex(server: FastifyInstance, guard: Guard): void {
  server.get('/', { onRequest: guard }, async (request, reply) => {
    reply.header('vary', 'Accept')
    if (request.headers.accept?.includes('text/html')) return reply.redirect('docs')
    return {
      name: 'Affiliate marketplace',
      docs: '/docs',
      guides: '/docs/guides',
      openapi: '/openapi.json',
      health: '/readyz',
    }
  })
}

/** `GET /docs`: the API reference, Swagger UI over /openapi.json. `guard` runs before the page is served. */
export function registerDocs(server: FastifyInstance, guard: Guard): void {
  server.get('/docs', { onRequest: guard }, async (_request, reply) =>
    reply.header('content-security-policy', PAGE_POLICY).type('text/html; charset=utf-8').send(PAGE),
  )
  for (const [name, type, text] of OWN_ASSETS) {
    server.get(`/docs/${name}`, async (_request, reply) =>
      reply.header('cache-control', ASSET_CACHE).type(type).send(text),
    )
  }
  for (const [name, type] of Object.entries(ASSET_TYPES)) {
    let asset: ReturnType<typeof readAsset> | undefined
    server.get(`/docs/${name}`, async (request, reply) => {
      reply.header('cache-control', ASSET_CACHE).header('vary', 'Accept-Encoding').type(type)
      asset ??= readAsset(name)
      const { plain, zipped } = await asset
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
      return reply.header('content-encoding', 'gzip').send(zipped)
    })
  }
}

async function readAsset(name: string): Promise<{ plain: Buffer; zipped: Buffer }> {
  const plain = await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)))
  return { plain, zipped: await promisify(gzip)(plain) }
}
