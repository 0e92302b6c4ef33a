import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { DAY_MS } from '../../shared/durations.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { acceptsHtml, type Guard, htmlReply, pagePolicy, serveAsset } from './pages.ts'

/** The page loads its own files only; Swagger UI's icons are data: images. */
const PAGE_POLICY = pagePolicy(
  "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'",
)

/** By their names below `/docs`. */
const ASSETS = {
  'start.js': new URL('pages/docs.js', import.meta.url),
  'style.css': new URL('pages/docs.css', import.meta.url),
  ...Object.fromEntries(
    ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'].map((name) => [
      name,
      new URL(import.meta.resolve(`swagger-ui-dist/${name}`)),
    ]),
  ),
}

/** `GET /`: leads browsers to the portal, or without it to the API reference; other clients get the addresses. */
export function registerIndex(server: FastifyInstance, { config }: Platform, guard: Guard): void {
  const hasPortal = config.PORTAL === 'on'
  server.get('/', { onRequest: guard }, async (request, reply) => {
    reply.header('vary', 'Accept')
    if (acceptsHtml(request)) return reply.redirect(hasPortal ? 'app' : 'docs')
    return {
      name: 'Affiliate marketplace',
      ...(hasPortal && { portal: '/app' }),
      docs: '/docs',
      guides: '/docs/guides',
      openapi: '/openapi.json',
      health: '/readyz',
    }
  })
}

/** `GET /docs`: the API reference, Swagger UI over /openapi.json. */
export function registerDocs(server: FastifyInstance, guard: Guard): void {
  const page = readFileSync(new URL('pages/docs.html', import.meta.url), 'utf8')
  server.get('/docs', { onRequest: guard }, async (_request, reply) =>
    htmlReply(reply, PAGE_POLICY).send(page),
  )
  for (const [name, file] of Object.entries(ASSETS)) serveAsset(server, `/docs/${name}`, file)
}

/** RFC 9116 recommends less than a year. */
const VALID_MS = 180 * DAY_MS

/** `GET /.well-known/security.txt` (RFC 9116): where to report a vulnerability. 404 without SECURITY_CONTACT. */
export function registerSecurityTxt(server: FastifyInstance, platform: Platform, guard: Guard): void {
  const contact = platform.config.SECURITY_CONTACT
  server.get('/.well-known/security.txt', { onRequest: guard }, async (_request, reply) => {
    if (contact === undefined) throw new Refusal('not_found', 'This service names no security contact.')
    const expires = new Date(platform.clock.now() + VALID_MS).toISOString()
    return reply
      .type('text/plain; charset=utf-8')
      .send(`Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\n`)
  })
}
