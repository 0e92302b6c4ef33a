import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Runs before a page is served. */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** The content security policy of a page that loads `sources` and nothing else. */
export function pagePolicy(sources: string, formAction = "'none'"): string {
  return `default-src 'none'; ${sources}; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`
}

/** Whether a browser asks for a page to show. */
export function acceptsHtml({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') ?? false
}

export function htmlReply(reply: FastifyReply, policy: string): FastifyReply {
  return reply.header('content-security-policy', policy).type('text/html; charset=utf-8')
}

/** URLs in `head` and `body` are relative, so that pages also work under a path prefix of a proxy. */
export function htmlPage({ title, head, body }: { title: string; head: string; body: string }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`
}

const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
}

/** Serves a file that pages load, compressed to clients that take that. It is read at the first request. */
export function serveAsset(server: FastifyInstance, path: string, file: URL): void {
  const type = TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? ''
  let asset: ReturnType<typeof readAsset> | undefined
  server.get(path, async (request, reply) => {
    asset ??= readAsset(file)
    return sendZipped(request, reply.header('cache-control', 'public, max-age=3600').type(type), await asset)
  })
}

async function readAsset(file: URL): Promise<Zipped> {
  const plain = await readFile(file)
  return { plain, zipped: await promisify(gzip)(plain) }
}

export interface Zipped {
  plain: Buffer
  zipped: Buffer
}

export function sendZipped(
  request: FastifyRequest,
  reply: FastifyReply,
  { plain, zipped }: Zipped,
): FastifyReply {
  reply.header('vary', 'Accept-Encoding')
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
  return reply.header('content-encoding', 'gzip').send(zipped)
}

export function etagOf(text: string | Buffer): string {
  return `"${hash('sha256', text, 'base64url').slice(0, 22)}"`
}

/**
 * Sets the ETag, and whether the client has that version already: then 304 without a body is the answer. Compares any tag of the list
 * weakly (RFC 9110), because a compressing proxy turns our tag into a weak one.
 */
export function isCurrent(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag)
  const tags = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''))
}
