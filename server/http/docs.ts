import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** URLs are relative, so the page also works under a path prefix of a proxy. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference: Affiliate offer marketplace</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. Without it, read <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script type="module" src="docs/start.js"></script>
</body>
</html>
`

/** "Try it out" calls the host that served the page. `validatorUrl: null` keeps Swagger UI from calling its online validator. */
const START = `const page = new URL('.', location.href)
const response = await fetch(new URL('openapi.json', page))
const spec = await response.json()
spec.servers = [{ url: page.href.replace(/\\/$/, '') }]
SwaggerUIBundle({
  spec,
  domNode: document.getElementById('reference'),
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  displayRequestDuration: true,
  validatorUrl: null,
})
`

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
  server.get('/docs/start.js', async (_request, reply) =>
    reply.header('cache-control', ASSET_CACHE).type('text/javascript; charset=utf-8').send(START),
  )
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
