import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { homeOf } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'

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

/** The style sheet of all pages, served at `/docs/pages.css`. */
export const STYLE_SHEET = new URL('pages/pages.css', import.meta.url)

const LANGUAGES = ['en', 'ur'] as const
export type Language = (typeof LANGUAGES)[number]
/** A text in each language. */
export type Words = Readonly<Record<Language, string>>

interface HtmlPage {
  language?: Language
  title: string
  head: string
  body: string
}

/** URLs in `head` and `body` are relative, so that pages also work under a path prefix of a proxy. */
export function htmlPage({ language = 'en', title, head, body }: HtmlPage): string {
  return `<!doctype html>
<html lang="${language}" dir="${language === 'ur' ? 'rtl' : 'ltr'}">
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

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const queryOf = ({ url }: FastifyRequest) => new URLSearchParams(url.split('?', 2)[1])

/** The language of a page: what `?lang=` names, else what the browser prefers, else English. */
export function languageOf(request: FastifyRequest): Language {
  const preferred = (request.headers['accept-language'] ?? '').split(',').map((part) => {
    const [tag = '', weight = '1'] = part.split(/;\s*q=/)
    return { name: tag.trim().slice(0, 2).toLowerCase(), weight: Number(weight) }
  })
  const names = preferred.sort((one, other) => other.weight - one.weight).map(({ name }) => name)
  const wanted = [queryOf(request).get('lang'), ...names]
  return (
    LANGUAGES.find((language) => language === wanted.find((name) => /^(en|ur)$/.test(name ?? ''))) ?? 'en'
  )
}

interface TaskPage {
  title: Words
  /** The style sheet, and scripts. */
  head: string
  /** In the language of `say`. */
  content(say: (words: Words) => string): string
  /** What scripts of the page say, by error code. */
  texts?: Readonly<Record<string, Words>>
}

/** A page on which a person does or reads one thing, in their language, with a link to the other one and a way to the app. */
export function taskPage(
  request: FastifyRequest,
  platform: Pick<Platform, 'config' | 'publicBaseUrl'>,
  { title, head, content, texts = {} }: TaskPage,
): string {
  const language = languageOf(request)
  const say = (words: Words) => words[language]
  const { MARKETPLACE_NAME } = platform.config
  const home = homeOf(platform)
  const name = `<bdi>${escapeHtml(MARKETPLACE_NAME)}</bdi>`
  const other: Language = language === 'en' ? 'ur' : 'en'
  const query = queryOf(request)
  query.set('lang', other)
  const wayBack =
    home === null
      ? ''
      : `\n<p><a href="${escapeHtml(home)}">${say({ en: `Go to ${name}`, ur: `${name} پر جائیں` })}</a></p>`
  const said = Object.fromEntries(Object.entries(texts).map(([code, words]) => [code, say(words)]))
  return htmlPage({
    language,
    title: `${say(title)} · ${escapeHtml(MARKETPLACE_NAME)}`,
    // Else a browser asks for /favicon.ico, which the policy refuses.
    head: `<link rel="icon" href="data:,">\n${head}`,
    body: `<header class="site"><strong>${name}</strong> <a href="?${escapeHtml(`${query}`)}" lang="${other}" hreflang="${other}">${other === 'ur' ? 'اردو' : 'English'}</a></header>
<main class="task" data-texts="${escapeHtml(JSON.stringify(said))}">
<h1>${say(title)}</h1>
${content(say)}${wayBack}
</main>`,
  })
}

interface DocumentPage {
  /** What leads from the page to the folder of `/docs`. */
  up: string
  /** As text; `main` and `nav` are HTML. */
  title: string
  marketplace: string
  current: 'docs' | 'docs/guides'
  main: string
  nav?: string
  head?: string
  /** What was searched for. */
  query?: string
}

/** A page of the documentation, with the header that leads to the others. */
export function documentPage({
  up,
  title,
  marketplace,
  current,
  main,
  nav,
  head,
  query = '',
}: DocumentPage): string {
  const link = (path: string, text: string) =>
    `<a href="${up}${path}"${path === current ? ' aria-current="true"' : ''}>${text}</a>`
  return htmlPage({
    title: escapeHtml(`${title} · ${marketplace}`),
    head: `<link rel="icon" href="${up}docs/favicon-32x32.png">
<link rel="stylesheet" href="${up}docs/pages.css">
<script type="module" src="${up}docs/pages.js"></script>${head ?? ''}`,
    body: `<a class="skip" href="#content">Skip to the content</a>
<header class="site"><strong>${escapeHtml(marketplace)}</strong> ${link('docs/guides', 'Guides')} ${link('docs', 'API reference')}
<form class="search" role="search" action="${up}docs/guides"><input type="search" name="q" value="${escapeHtml(query)}" maxlength="100" placeholder="Search the guides" aria-label="Search the guides"></form></header>
<div class="columns">
${nav ?? ''}<main id="content">
${main}</main>
</div>`,
  })
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
  return zip(await readFile(file))
}

export interface Zipped {
  plain: Buffer
  zipped: Buffer
  etag: string
}

export async function zip(plain: Buffer): Promise<Zipped> {
  return { plain, zipped: await promisify(gzip)(plain, { level: 9 }), etag: etagOf(plain) }
}

/** Sends a file, or 304 to a client that has it. The tag is weak: it is the same for both encodings. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: Zipped): FastifyReply {
  if (isCurrent(request, reply.header('vary', 'Accept-Encoding'), `W/${page.etag}`))
    return reply.code(304).send()
  return sendZipped(request, reply, page)
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
