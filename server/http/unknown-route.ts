import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { sendProblem } from './errors.ts'

type KnownPaths = ReadonlyMap<string, { pattern: RegExp; methods: Set<string> }>

/** The paths of the routes that are registered from here on, with the methods that they take. */
export function watchRoutes(server: FastifyInstance): KnownPaths {
  const methodsByUrl = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  server.addHook('onRoute', ({ url, method }) => {
    // CORS takes OPTIONS for whatever path there is, or is not.
    if (url === '*') return
    const known = methodsByUrl.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() }
    for (const name of [method].flat()) known.methods.add(name)
    methodsByUrl.set(url, known)
  })
  return methodsByUrl
}

/** Answers what no route takes: 405 with Allow when the path has other methods, 404 otherwise. */
export function answerUnknownRoutes(server: FastifyInstance, platform: Platform, paths: KnownPaths): void {
  server.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const known = [...paths.values()].filter(({ pattern }) => pattern.test(path))
    const allowed = new Set(known.flatMap(({ methods }) => [...methods]))
    if (allowed.size === 0) {
      return sendProblem(platform, request, reply, new Refusal('not_found', 'There is nothing at this path.'))
    }
    const detail = `This path does not take ${request.method}.`
    reply.header('allow', [...allowed].sort().join(', '))
    return sendProblem(platform, request, reply, new Refusal('method_not_allowed', detail))
  })
}

/**
 * The router takes `/offers/` for `/offers/:id` with an empty id; to a caller there is nothing at that path. Comes after the
 * hooks that every answer owes its headers to.
 */
export function refuseEmptyParameters(server: FastifyInstance): void {
  server.addHook<{ Params: Record<string, string> }>('onRequest', (request, reply, done) => {
    if (Object.values(request.params).includes('')) reply.callNotFound()
    else done()
  })
}

function patternOf(url: string): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment.startsWith(':')) return '[^/]+'
    return segment === '*' ? '.*' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${segments.join('/')}$`)
}
