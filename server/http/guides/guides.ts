import { readdir, readFile } from 'node:fs/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { shopDomainInput } from '../../../shared/schemas/stores.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import type { Platform } from '../../platform/platform.ts'
import { documentPage, escapeHtml, etagOf, type Guard, htmlReply, isCurrent, pagePolicy } from '../pages.ts'
import type { RenderedGuide } from './render-guide.ts'
import { type GuideSection, searchGuides, sectionsOf } from './search-guides.ts'

const FOLDER = new URL('../../guides/', import.meta.url)
/** As in the README. Guides that are not named here follow in alphabetical order. */
const ORDER = [
  'quickstart',
  'connect-shopify',
  'api',
  'webhooks',
  'settings',
  'safepay',
  'manual',
  'deploy',
  'high-availability',
  'operate',
  'backup-and-restore',
  'upgrade',
  'security',
  'proofs',
  'benchmarks',
  'contribute',
]

/** The pages load their own files only, and their search is sent to this service. */
const PAGE_POLICY = pagePolicy("script-src 'self'; style-src 'self'; img-src 'self'", "'self'")
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
  platform: Pick<Platform, 'publicBaseUrl' | 'config'>,
  guard: Guard,
): void {
  const marketplace = platform.config.MARKETPLACE_NAME
  const pages = new Map<string, Promise<StoredPage>>()
  let loading: Promise<Guide[]> | undefined
  let searchable: Promise<GuideSection[]> | undefined
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

  server.get<{ Querystring: { q?: unknown } }>(
    '/docs/guides',
    { onRequest: guard },
    async (request, reply) => {
      htmlReply(reply, PAGE_POLICY)
      const { q } = request.query
      if (typeof q === 'string' && q.trim() !== '') {
        searchable ??= readSections(await guides())
        return reply.send(resultsPage(marketplace, q.slice(0, MOST_QUERY), await searchable))
      }
      const page = await stored('', async () => indexPage(marketplace, await guides()))
      return sendStored(request, reply, page)
    },
  )

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
        const page = await stored(`guide ${guide.name}`, () => guidePage(marketplace, guide, all))
        const { store } = request.query
        const isFilled = guide.name === MERCHANTS_GUIDE && store !== undefined
        const shown = isFilled ? storedPage(fillIn(page.text, store, platform.publicBaseUrl)) : page
        return sendStored(request, htmlReply(reply, PAGE_POLICY), shown)
      }
      reply.header('vary', 'Accept')
      if (request.headers.accept?.includes('text/html')) {
        return htmlReply(reply, PAGE_POLICY).code(404).send(unknownPage(marketplace, all))
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
function fillIn(page: string, store: unknown, publicBaseUrl: string): string {
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

const MOST_QUERY = 100

function indexPage(marketplace: string, guides: Guide[]): string {
  const items = guides.map(
    ({ name, title, summary }) =>
      `<li><a href="guides/${name}">${escapeHtml(title)}</a><p>${summary}</p></li>\n`,
  )
  const main = `<h1>Guides</h1>\n<ul class="guides">\n${items.join('')}</ul>\n`
  return documentPage({ up: '../', title: 'Guides', marketplace, current: 'docs/guides', main })
}

async function readSections(guides: Guide[]): Promise<GuideSection[]> {
  const { renderGuide } = await import('./render-guide.ts')
  return guides.flatMap(({ name, markdown }) => sectionsOf(name, renderGuide(markdown, []).body))
}

function resultsPage(marketplace: string, query: string, sections: GuideSection[]): string {
  const items = searchGuides(sections, query)
  const list =
    items.length === 0 ? '<p>Nothing found.</p>\n' : `<ol class="guides">\n${items.join('')}</ol>\n`
  const main = `<h1>Search: ${escapeHtml(query)}</h1>\n${list}<p><a href="guides">All guides</a></p>\n`
  return documentPage({
    up: '../',
    title: `Search: ${query}`,
    marketplace,
    current: 'docs/guides',
    main,
    query,
  })
}

async function guidePage(marketplace: string, guide: Guide, guides: Guide[]): Promise<string> {
  const { renderGuide } = await import('./render-guide.ts')
  const names = guides.map(({ name }) => name)
  const rendered = renderGuide(guide.markdown, names)
  const at = guides.indexOf(guide)
  return documentPage({
    up: '../../',
    title: guide.title,
    marketplace,
    current: 'docs/guides',
    nav: navigation(guides, guide, rendered),
    main: `${rendered.body}${neighbors(guides[at - 1], guides[at + 1])}`,
  })
}

function unknownPage(marketplace: string, guides: Guide[]): string {
  const title = 'No such guide'
  const main = `<h1>${title}</h1>\n<p><a href="../guides">All guides</a></p>\n`
  return documentPage({
    up: '../../',
    title,
    marketplace,
    current: 'docs/guides',
    nav: navigation(guides),
    main,
  })
}

/** The list of guides, with the sections of the one that is shown. */
function navigation(guides: Guide[], shown?: Guide, rendered?: RenderedGuide): string {
  const sections = (rendered?.sections ?? []).map(
    ({ anchor, title }) => `<li><a href="#${anchor}">${title}</a></li>`,
  )
  const items = guides.map((guide) => {
    if (guide !== shown) return `<li><a href="${guide.name}">${escapeHtml(guide.title)}</a></li>\n`
    const below = sections.length > 0 ? `<ul>${sections.join('')}</ul>` : ''
    return `<li><a href="${guide.name}" aria-current="page">${escapeHtml(guide.title)}</a>${below}</li>\n`
  })
  return `<nav aria-label="Guides"><ul>\n${items.join('')}</ul></nav>\n`
}

function neighbors(before?: Guide, after?: Guide): string {
  const link = (guide: Guide | undefined, rel: 'prev' | 'next', text: string) =>
    guide ? `<a rel="${rel}" href="${guide.name}">${text}: ${escapeHtml(guide.title)}</a>` : ''
  return `<nav class="neighbors" aria-label="Next guides">${link(before, 'prev', 'Previous')}${link(after, 'next', 'Next')}</nav>\n`
}
