import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'
import type { HttpApp } from './context.ts'
import {
  escapeHtml,
  type Guard,
  htmlReply,
  languageOf,
  pagePolicy,
  sendPage,
  sendZipped,
  type Zipped,
  zip,
} from './pages.ts'

const ROOT = dirname(findPackageJSON(import.meta.url) ?? '')
const SOURCE = join(ROOT, 'shared', 'client', 'portal')
const BUILT = join(ROOT, 'dist', 'portal')

const NOT_BUILT =
  'This service runs without its portal. In a checkout, "npm ci" installs what builds it; published packages have it.'

/** The page is cached for as long as a look around takes; its scripts, whose names change with their content, for good. */
const PAGE_CACHE = 'private, max-age=300'
const SCRIPT_CACHE = 'public, max-age=31536000, immutable'

/**
 * Stands in for a script that a deployment has replaced: loads the page that names it again, which asks the service for it. Later if that
 * has just been done, as while two versions serve.
 */
const OUTDATED = `const [page] = performance.getEntriesByType('navigation')
setTimeout(() => location.reload(), page?.type === 'reload' ? 5000 : 0)
`

/** The call of a visitor's first screen, as the client makes it. */
const CATALOGUE = `/trpc/offers.categories,offers.list?batch=1&input=${encodeURIComponent('{"1":{"limit":50}}')}`

interface Portal {
  page: Zipped & { policy: string }
  scripts: ReadonlyMap<string, Zipped>
}

/** `GET /app` and everything below: the page, which finds its screen by the path, and its scripts. 404 with `PORTAL=off`. */
export function registerPortal(
  server: FastifyInstance,
  { platform }: Pick<HttpApp, 'platform'>,
  guard: Guard,
): void {
  if (platform.config.PORTAL === 'off') return
  let loading: Promise<Portal> | undefined
  const load = () => {
    // Tried again after a failure, whose reason may pass.
    loading ??= loadPortal(platform.config.MARKETPLACE_NAME).catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    const { page, scripts } = await load()
    // Also on 304, whose headers take the place of those that the browser has kept.
    htmlReply(reply, page.policy).header('cache-control', PAGE_CACHE)
    const preloads = preloadsOf(request, [...scripts.keys()])
    if (preloads) reply.header('link', preloads)
    return sendPage(request, reply, page)
  }
  for (const path of ['/app', '/app/']) server.get(path, { onRequest: guard }, page)
  server.get<{ Params: { '*': string } }>('/app/*', { onRequest: guard }, async (request, reply) => {
    const [, name] = /^assets\/(.*)/.exec(request.params['*']) ?? []
    if (name === undefined) return page(request, reply)
    const script = (await load()).scripts.get(name)
    reply.type('text/javascript; charset=utf-8')
    if (!script) return reply.header('cache-control', 'no-store').send(OUTDATED)
    return sendZipped(request, reply.header('cache-control', SCRIPT_CACHE), script)
  })
}

/** What the first view of this browser needs beside the scripts that the page names, so that it is fetched at the same time. */
function preloadsOf(request: FastifyRequest, scripts: readonly string[]): string {
  const hasSession = /\bsession=/.test(request.headers.cookie ?? '')
  const names = [...(hasSession ? ['members'] : []), ...(languageOf(request) === 'ur' ? ['urdu'] : [])]
  const links = names.map((name) => {
    const script = scripts.find((one) => one.startsWith(`${name}-`))
    return `</app/assets/${script}>; rel=modulepreload`
  })
  const isCatalogue = !hasSession && /^\/app(?:\/|\/offers)?$/.test(request.url)
  if (isCatalogue) links.push(`<${CATALOGUE}>; rel=preload; as=fetch; crossorigin`)
  return links.join(', ')
}

async function loadPortal(marketplace: string): Promise<Portal> {
  const files = await readPortal()
  const text = files.get('index.html')?.toString() ?? ''
  const plain = Buffer.from(text.replaceAll('Affiliate marketplace', () => escapeHtml(marketplace)))
  const [, styles = ''] = /<style>([\s\S]*)<\/style>/.exec(text) ?? []
  const allowed = `style-src 'self' 'sha256-${hash('sha256', styles, 'base64')}'`
  const policy = pagePolicy(
    `script-src 'self'; ${allowed}; img-src 'self' data:; connect-src 'self'`,
    "'self'",
  )
  const scripts = [...files].filter(([name]) => name.endsWith('.js'))
  return {
    page: { ...(await zip(plain)), policy },
    scripts: new Map(
      await Promise.all(scripts.map(async ([name, text]) => [name, await zip(text)] as const)),
    ),
  }
}

/** Of a checkout, made from its sources; else as packed. */
async function readPortal(): Promise<Map<string, Buffer>> {
  if (existsSync(SOURCE)) {
    const builder = join(ROOT, 'scripts', 'build-portal.ts')
    const built = await import(builder).catch(ignoreMissingPackages)
    if (built) return built.buildPortal()
  }
  if (!existsSync(BUILT)) throw new Refusal('not_found', NOT_BUILT)
  const names = await readdir(BUILT)
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(BUILT, name))] as const)),
  )
}

/** Without the development dependencies there is no bundler. */
function ignoreMissingPackages(error: NodeJS.ErrnoException): null {
  if (error.code === 'ERR_MODULE_NOT_FOUND') return null
  throw error
}
