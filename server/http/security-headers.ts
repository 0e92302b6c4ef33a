import fastifyHelmet, { type FastifyHelmetOptions } from '@fastify/helmet'
import fastify, { type FastifyInstance } from 'fastify'
import { NO_SCHEMAS } from './no-schemas.ts'

/**
 * Answers are data, never a page: nothing in them may load, run, or be framed. The one page, /docs, brings a policy of
 * its own. No `includeSubDomains`: what else stands below the operator's domain is not ours to decide.
 */
const POLICY: FastifyHelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  strictTransportSecurity: { maxAge: 31_536_000, includeSubDomains: false },
  xFrameOptions: { action: 'deny' },
}

/**
 * Puts helmet's headers on every answer. They are the same on all of them, so helmet is asked once: asked at each request
 * it takes as long as all the rest of a redirect.
 */
export async function secureAnswers(server: FastifyInstance): Promise<void> {
  const headers = await securityHeaders()
  server.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers)
    done()
  })
}

async function securityHeaders(): Promise<Record<string, string>> {
  const sample = fastify(NO_SCHEMAS)
  await sample.register(fastifyHelmet, POLICY)
  // It has no route, but helmet stands before the answer that says so too.
  const { headers } = await sample.inject('/')
  await sample.close()
  const { date, connection, 'content-length': _length, 'content-type': _type, ...lasting } = headers
  return Object.fromEntries(Object.entries(lasting).map(([name, value]) => [name, String(value)]))
}
