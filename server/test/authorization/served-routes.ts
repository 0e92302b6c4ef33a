import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'

/** A method and a path that the server answers, as Fastify has registered them. */
export interface ServedRoute {
  method: string
  url: string
}

/** Runs `start` and tells, beside its result, every route that servers made meanwhile have registered. */
export async function watchRoutes<T>(start: () => Promise<T>): Promise<{ result: T; routes: ServedRoute[] }> {
  const routes: ServedRoute[] = []
  const listen = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const name of [method].flat()) routes.push({ method: name, url })
    })
  }
  subscribe('fastify.initialization', listen)
  try {
    return { result: await start(), routes }
  } finally {
    unsubscribe('fastify.initialization', listen)
  }
}
