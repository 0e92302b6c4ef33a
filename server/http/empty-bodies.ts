import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'

/**
 * Under `optimizeEmptyRequests` a request that announces no body has one that ended before anybody could listen: a parser
 * that its content type calls for would wait for that end for ever, so it is given one that ends.
 */
export function endEmptyBodies(server: FastifyInstance): void {
  server.addHook('preParsing', ({ raw: { method, headers } }, _reply, payload, done) => {
    const announced = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    done(null, method === 'GET' || method === 'HEAD' || announced ? payload : Readable.from([]))
  })
}
