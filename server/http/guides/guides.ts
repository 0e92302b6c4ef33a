import { readdir, readFile } from 'node:fs/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { shopDomainInput } from '../../../shared/schemas/stores.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { etagOf, type Guard, htmlPage, htmlReply, isCurrent, pagePolicy } from '../pages.ts'
import type { RenderedGuide } from './render-guide.ts'

const FOLDER = new URL('../../guides/', import.meta.url)
/** Guides that are not named here follow in alphabetical order. */
const ORDER = [
  'quickstart',
  'connect-shopify',
  'api',
  'webhooks',
  'deploy',
  'high-availability',
  'settings',
  'operate',
  'backup-and-restore',
  'upgrade',
  'security',
  'proofs',
  'benchmarks',
  'contribute',
]

/** The pages load one style sheet and an icon, and run nothing. */
const PAGE_POLICY = pagePolicy("style-src 'self'; img-src 'self'")
/** Short, so that an upgrade shows soon. */
const CACHE = 'public, max-age=300'

interface Guide {
  name: string
  title: string
  summary: string
  markdown: string
}

interface StoredPage {
  text: string
  etag: string
}

const DRAWINGS = ['create-webhook', 'webhook-secret', 'theme-script']

/**
 * `GET /docs/guides` and `/docs/guides/:name`: `server/guides/` as pages. `guard` runs before a page is served. With `?store=DOMAIN`, the
 * guide for merchants has their shop's domain and the addresses of this service (`publicBaseUrl`) in place of the examples.
 */
export function registerGuides(
  server: FastifyInstance,
  platform: { readonly publicBaseUrl: string },
  guard: Guard,
): void {
  const pages = new Map<string, Promise<StoredPage>>()
  let loading: Promise<Guide[]> | undefined
  const guides = () => {
    loading ??= readGuides()
    return loading
  }
  /** Makes each page at its first request and keeps it. */
  const stored = (key: string, make: () => Promise<string>) => {
    const page = pages.get(key) ?? make().then(storedPage)
    pages.set(key, page)
    return page
  }

  server.get('/docs/guides.css', { onRequest: guard }, async (request, reply) => {
    const page = await stored('guides.css', () => readFile(new URL('guides.css', FOLDER), 'utf8'))
    return sendStored(request, reply.type('text/css; charset=utf-8'), page)
  })

  server.get('/docs/guides', { onRequest: guard }, async (request, reply) => {
    const page = await stored('', async () => indexPage(await guides()))
    return sendStored(request, htmlReply(reply, PAGE_POLICY), page)
  })

  for (const name of DRAWINGS) {
    const path = `drawings/${name}.svg`
    server.get(`/docs/guides/${path}`, { onRequest: guard }, async (request, reply) => {
      const page = await stored(path, () => readFile(new URL(path, FOLDER), 'utf8'))
      return sendStored(request, reply.type('image/svg+xml'), page)
    })
  }

  server.get<{ Params: { name: string }; Querystring: { store?: unknown } }>(
    '/docs/guides/:name',
    { onRequest: guard },
    async (request, reply) => {
      const all = await guides()
      const guide = all.find(({ name }) => name === request.params.name)
      if (guide) {
        const page = await stored(`guide ${guide.name}`, () => guidePage(guide, all))
        const { store } = request.query
        const isFilled = guide.name === MERCHANTS_GUIDE && store !== undefined
        const shown = isFilled ? storedPage(await fillIn(page.text, store, platform.publicBaseUrl)) : page
        return sendStored(request, htmlReply(reply, PAGE_POLICY), shown)
      }
      reply.header('vary', 'Accept')
      if (request.headers.accept?.includes('text/html')) {
        return htmlReply(reply, PAGE_POLICY).code(404).send(unknownPage(all))
      }
      throw new Refusal('not_found', 'No such guide. /docs/guides lists them.')
    },
  )
}

async function readGuides(): Promise<Guide[]> {
  const { summarizeGuide } = await import('./render-guide.ts')
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.md')).sort()
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  const guides = files.map(async (file) => {
    const markdown = await readFile(new URL(file, FOLDER), 'utf8')
    return { name: file.slice(0, -'.md'.length), markdown, ...summarizeGuide(markdown) }
  })
  return (await Promise.all(guides)).sort((one, other) => place(one.name) - place(other.name))
}

const MERCHANTS_GUIDE = 'connect-shopify'
/** What stands in that guide for the service's address and the shop's domain. */
const EXAMPLES = { address: 'https://HOST', domain: 'rafi-ajrak.myshopify.com' }

/**
 * The page with values of its own, which come from the request and the settings only: it must not tell whether the shop is connected.
 * Without a valid domain only the addresses are filled in.
 */
async function fillIn(page: string, store: unknown, publicBaseUrl: string): Promise<string> {
  const { escapeHtml } = await import('./render-guide.ts')
  const domain = shopDomainInput.safeParse(store).data
  const address = escapeHtml(publicBaseUrl)
  const filled = page
    .replaceAll(EXAMPLES.address, () => address)
    .replaceAll(EXAMPLES.domain, (example) => domain ?? example)
  const about = domain
    ? `Filled in for <code>${domain}</code>.`
    : `Filled in with the addresses of this service. For your shop's domain too, write <code>?store=my-shop.myshopify.com</code> in its address.`
  return filled.replace('<main id="content">', (main) => `${main}\n<p class="filled">${about}</p>`)
}

function storedPage(text: string): StoredPage {
  return { text, etag: etagOf(text) }
}

function sendStored(request: FastifyRequest, reply: FastifyReply, { text, etag }: StoredPage): FastifyReply {
  reply.header('cache-control', CACHE)
  return isCurrent(request, reply, etag) ? reply.code(304).send() : reply.send(text)
}

/** URLs are relative, so the pages also work under a path prefix of a proxy. `up` leads to the folder `/docs/`. */
interface PageParts {
  up: '' | '../'
  title: string
  nav: string
  main: string
}

function pageOf({ up, title, nav, main }: PageParts): string {
  return htmlPage({
    title: `${title}: Affiliate marketplace`,
    head: `<link rel="icon" href="${up}favicon-32x32.png">
<link rel="stylesheet" href="${up}guides.css">`,
    body: `<a class="skip" href="#content">Skip to the content</a>
<header><strong>Affiliate marketplace</strong> <a href="${up}guides">Guides</a> <a href="${up}../docs">API reference</a></header>
<div class="columns">
${nav}<main id="content">
${main}</main>
</div>`,
  })
}

function indexPage(guides: Guide[]): string {
  const items = guides.map(
    ({ name, title, summary }) => `<li><a href="guides/${name}">${title}</a><p>${summary}</p></li>\n`,
  )
  const main = `<h1>Guides</h1>\n<ul class="guides">\n${items.join('')}</ul>\n`
  return pageOf({ up: '', title: 'Guides', nav: '', main })
}

async function guidePage(guide: Guide, guides: Guide[]): Promise<string> {
  const { renderGuide } = await import('./render-guide.ts')
  const names = guides.map(({ name }) => name)
  const rendered = renderGuide(guide.markdown, names)
  const at = guides.indexOf(guide)
  return pageOf({
    up: '../',
    title: guide.title,
    nav: navigation(guides, guide, rendered),
    main: `${rendered.body}${neighbors(guides[at - 1], guides[at + 1])}`,
  })
}

function unknownPage(guides: Guide[]): string {
  const main = '<h1>No such guide</h1>\n<p><a href="../guides">All guides</a></p>\n'
  return pageOf({ up: '../', title: 'No such guide', nav: navigation(guides), main })
}

/** The list of guides, with the sections of the one that is shown. */
function navigation(guides: Guide[], shown?: Guide, rendered?: RenderedGuide): string {
  const sections = (rendered?.sections ?? []).map(
    ({ anchor, title }) => `<li><a href="#${anchor}">${title}</a></li>`,
  )
  const items = guides.map((guide) => {
    if (guide !== shown) return `<li><a href="${guide.name}">${guide.title}</a></li>\n`
    const below = sections.length > 0 ? `<ul>${sections.join('')}</ul>` : ''
    return `<li><a href="${guide.name}" aria-current="page">${guide.title}</a>${below}</li>\n`
  })
  return `<nav aria-label="Guides"><ul>\n${items.join('')}</ul></nav>\n`
}

function neighbors(before?: Guide, after?: Guide): string {
  const link = (guide: Guide | undefined, rel: 'prev' | 'next', text: string) =>
    guide ? `<a rel="${rel}" href="${guide.name}">${text}: ${guide.title}</a>` : ''
  return `<nav class="neighbors" aria-label="Next guides">${link(before, 'prev', 'Previous')}${link(after, 'next', 'Next')}</nav>\n`
}
