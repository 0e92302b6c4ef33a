import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { jsonOf } from '../platform/kept-json.ts'
import type { Platform } from '../platform/platform.ts'

/** Pages of up to some eighty kilobytes. */
const MOST_ANSWERS = 300

interface SharedAnswer {
  body: Buffer
  etag: string
}

/**
 * Sends the answer that the cache holds under `key`, or what `answer` finds; 304 when the request names its ETag.
 * Browsers and proxies may keep the answer but must revalidate it: it changes with every offer.
 */
export async function sendShared(
  platform: Platform,
  { name, key }: { name: string; key: string },
  request: FastifyRequest,
  reply: FastifyReply,
  answer: () => Promise<unknown>,
): Promise<FastifyReply> {
  const load = async () => made(await answer())
  const shared = await platform.caches.get(name, key, load, MOST_ANSWERS)
  const vary = [reply.getHeader('vary') ?? [], 'Authorization'].flat().join(', ')
  reply.headers({ 'cache-control': 'public, no-cache', vary, etag: shared.etag })
  if (isKnown(request.headers['if-none-match'], shared.etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(shared.body)
}

function made(result: unknown): SharedAnswer {
  const body = Buffer.from(jsonOf(result))
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` }
}

/** RFC 9110: any of the list, compared weakly: a proxy that compresses makes a weak tag of ours. */
function isKnown(given: string | undefined, etag: string): boolean {
  if (given === undefined) return false
  return given.split(',').some((one) => {
    const tag = one.trim()
    return tag === '*' || tag.replace(/^W\//, '') === etag
  })
}
