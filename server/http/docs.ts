import type { FastifyInstance } from 'fastify'
import { DAY_MS } from '../../shared/durations.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import {
  acceptsHtml,
  documentPage,
  escapeHtml,
  type Guard,
  htmlReply,
  pagePolicy,
  STYLE_SHEET,
  sendPage,
  serveAsset,
  type Zipped,
  zip,
} from './pages.ts'

/** The page loads its own files only; Swagger UI's icons are data: images. */
const PAGE_POLICY = pagePolicy(
  "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'",
  "'self'",
)

/** By their names below `/docs`. */
const ASSETS = {
  'pages.css': STYLE_SHEET,
  'pages.js': new URL('pages/pages.js', import.meta.url),
  'reference.css': new URL('pages/docs.css', import.meta.url),
  'reference.js': new URL('pages/docs.js', import.meta.url),
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
      name: config.MARKETPLACE_NAME,
      ...(hasPortal && { portal: '/app' }),
      docs: '/docs',
      guides: '/docs/guides',
      openapi: '/openapi.json',
      health: '/readyz',
    }
  })
}

/** What the page needs of the OpenAPI document. */
interface Reference {
  info: { description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, { tags: string[]; summary: string; operationId: string }>>
}

/**
 * `GET /docs`: the API reference, Swagger UI over /openapi.json. Until its script has run, and without scripts, the page lists the
 * operations. `document` returns the OpenAPI document.
 */
export function registerDocs(
  server: FastifyInstance,
  { config }: Platform,
  document: () => Record<string, unknown>,
  guard: Guard,
): void {
  let page: Promise<Zipped> | undefined
  server.get('/docs', { onRequest: guard }, async (request, reply) => {
    page ??= referencePage(config.MARKETPLACE_NAME, document() as unknown as Reference).then(zip)
    const made = await page
    return sendPage(request, htmlReply(reply, PAGE_POLICY).header('cache-control', 'public, no-cache'), made)
  })
  for (const [name, file] of Object.entries(ASSETS)) serveAsset(server, `/docs/${name}`, file)
}

async function referencePage(marketplace: string, { info, tags, paths }: Reference): Promise<Buffer> {
  const { renderGuide } = await import('./guides/render-guide.ts')
  const [about = '', more = ''] = info.description.split(/\n(?=## )([\s\S]*)/)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      ...operation,
    })),
  )
  const groups = tags.map(({ name, description }) => {
    const items = operations
      .filter((operation) => operation.tags[0] === name)
      .map(
        ({ method, path, summary, operationId }) =>
          `<li><a href="#/${name}/${operationId}"><code>${method} ${path}</code></a> ${escapeHtml(summary)}</li>\n`,
      )
    return `<h3>${name}</h3>\n<p>${escapeHtml(description)}</p>\n<ul>\n${items.join('')}</ul>\n`
  })
  const main = `<h1>API reference</h1>
${renderGuide(about, []).body}<details><summary>Getting started, conventions and errors</summary>
${renderGuide(more, []).body}</details>
<div id="reference">
<noscript><p>To try operations out, this page needs JavaScript. All details are in <a href="openapi.json">openapi.json</a>.</p></noscript>
${groups.join('')}</div>
`
  // `reference.js` loads the rest: at once on a wide screen, where it is fetched meanwhile.
  const wide = 'media="(min-width: 641px)"'
  const head = `
<link rel="stylesheet" href="docs/reference.css">
<link rel="preload" as="fetch" crossorigin ${wide} href="openapi.json">
<link rel="preload" as="style" ${wide} href="docs/swagger-ui.css">
<link rel="preload" as="script" ${wide} href="docs/swagger-ui-bundle.js">
<script type="module" src="docs/reference.js"></script>`
  const title = 'API reference'
  return Buffer.from(documentPage({ up: '', title, marketplace, current: 'docs', main, head }))
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
