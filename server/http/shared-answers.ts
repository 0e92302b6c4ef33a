import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { etagOf, isCurrent } from './pages.ts'

/** A full page of offers is about 80 KB. */
const MAX_ANSWERS = 300

interface SharedAnswer {
  body: string
  etag: string
}

/**
 * Sends a response that is the same for all anonymous callers, from the cache or computed by `answer`, with an ETag; 304 if
 * the request names that ETag. Browsers and proxies may store the response but must revalidate it.
 */
export async function sendShared(
  platform: Platform,
  { name, key }: { name: string; key: string },
  request: FastifyRequest,
  reply: FastifyReply,
  answer: () => Promise<unknown>,
): Promise<FastifyReply> {
  const load = async () => serialize(await answer())
  const shared = await platform.caches.get(name, key, load, MAX_ANSWERS)
  const vary = [reply.getHeader('vary') ?? [], 'Authorization'].flat().join(', ')
  reply.headers({ 'cache-control': 'public, no-cache', vary })
  if (isCurrent(request, reply, shared.etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(shared.body)
}

function serialize(result: unknown): SharedAnswer {
  const body = JSON.stringify(result)
  return { body, etag: etagOf(body) }
}
