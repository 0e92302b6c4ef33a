import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Addresses are relative, so that the reference also works below another path of a proxy. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Affiliate offer marketplace: reference</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. The document itself: <a href="openapi.json">openapi.json</a></noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script type="module" src="docs/start.js"></script>
</body>
</html>
`

/** Calls from the page go to where it came from, by whatever name that was reached. `validatorUrl` would go elsewhere. */
const START = `const page = new URL('.', location.href)
const answer = await fetch(new URL('openapi.json', page))
const spec = await answer.json()
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

/** What the page needs and nothing else: its own scripts, styles and calls; Swagger UI's symbols are data: images. */
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

/** Where the package keeps what its own plugin serves. */
const ASSETS = new URL('static/', import.meta.resolve('@fastify/swagger-ui'))
const ASSET_TYPES: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}
/** They change with a new version of the service only; an hour keeps a browser from fetching them for every page. */
const ASSET_CACHE = 'public, max-age=3600'

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/**
 * `GET /docs`, the browsable reference over /openapi.json: Swagger UI from our own dependencies, no other server is
 * asked for anything. `guard` comes first on the page itself.
 */
export function registerDocs(server: FastifyInstance, guard: Guard): void {
  server.get('/docs', { onRequest: guard }, async (_request, reply) =>
    reply.header('content-security-policy', PAGE_POLICY).type('text/html; charset=utf-8').send(PAGE),
  )
  server.get('/docs/start.js', async (_request, reply) =>
    reply.header('cache-control', ASSET_CACHE).type('text/javascript; charset=utf-8').send(START),
  )
  for (const [name, type] of Object.entries(ASSET_TYPES)) {
    const load = assetLoader(name)
    server.get(`/docs/${name}`, async (request, reply) => {
      reply.header('cache-control', ASSET_CACHE).header('vary', 'Accept-Encoding').type(type)
      const { plain, zipped } = await load()
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
      return reply.header('content-encoding', 'gzip').send(zipped)
    })
  }
}

interface Asset {
  plain: Buffer
  zipped: Buffer
}

/** Read and compressed once, at the first request. */
function assetLoader(name: string): () => Promise<Asset> {
  let asset: Promise<Asset> | undefined
  return () => {
    asset ??= (async () => {
      const plain = await readFile(fileURLToPath(new URL(name, ASSETS)))
      return { plain, zipped: await promisify(gzip)(plain) }
    })()
    return asset
  }
}
