import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { sendProblem } from './errors.ts'

interface KnownPath {
  pattern: RegExp
  methods: Set<string>
}

type KnownPaths = ReadonlyMap<string, KnownPath>

/** Collects the path and the methods of each route that is registered after this call. */
export function collectRoutes(server: FastifyInstance): KnownPaths {
  const paths = new Map<string, KnownPath>()
  server.addHook('onRoute', ({ url, method }) => {
    // The CORS plugin's OPTIONS route matches every path.
    if (url === '*') return
    const known = paths.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() }
    for (const name of [method].flat()) known.methods.add(name)
    paths.set(url, known)
  })
  return paths
}

/** A parameter stands for one segment, `*` for any rest. */
function patternOf(url: string): RegExp {
  const escaped = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`)
}

/** Answers requests without a route that `follow` does not answer: 405 with Allow if the path has other methods, otherwise 404. */
export function answerUnknownRoutes(
  server: FastifyInstance,
  platform: Platform,
  paths: KnownPaths,
  follow: (request: FastifyRequest, reply: FastifyReply) => boolean = () => false,
): void {
  server.setNotFoundHandler((request, reply) => {
    if (follow(request, reply)) return reply
    const path = request.url.split('?', 1)[0] ?? ''
    const known = [...paths.values()].filter(({ pattern }) => pattern.test(path))
    const allowed = new Set(known.flatMap(({ methods }) => [...methods]))
    if (allowed.size === 0) {
      return sendProblem(platform, request, reply, new Refusal('not_found', 'No such path.'))
    }
    const names = [...allowed].sort().join(', ')
    const detail = `This path does not support ${request.method}; use ${names}.`
    return sendProblem(
      platform,
      request,
      reply.header('allow', names),
      new Refusal('method_not_allowed', detail),
    )
  })
}

/** Answers 404 to a path with an empty parameter: the router matches `/offers/` with `/offers/:id`. */
export function refuseEmptyParameters(server: FastifyInstance): void {
  server.addHook<{ Params: Record<string, string> }>('onRequest', (request, reply, done) => {
    if (Object.values(request.params).includes('')) reply.callNotFound()
    else done()
  })
}
