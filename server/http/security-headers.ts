import fastifyHelmet, { type FastifyHelmetOptions } from '@fastify/helmet'
import fastify from 'fastify'
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

/** The headers of every answer. */
export interface SecurityHeaders {
  all: Readonly<Record<string, string>>
  /**
   * For answers that no browser can show, run or read: a redirect, or a word to a program. The others are about what is
   * done with a body, and the hottest paths write and send each header once an answer.
   */
  few: Readonly<Record<string, string>>
}

/** Besides keeping to TLS and to the type that is said: no other site may load a link as its picture, as if somebody had come. */
const FEW = ['strict-transport-security', 'x-content-type-options', 'cross-origin-resource-policy']

/**
 * What helmet says to our policy. It is the same at every request, so helmet is asked once: asked each time it takes as
 * long as all the rest of a redirect.
 */
export async function securityHeaders(): Promise<SecurityHeaders> {
  const sample = fastify(NO_SCHEMAS)
  await sample.register(fastifyHelmet, POLICY)
  // It has no route, but helmet stands before the answer that says so too.
  const { headers } = await sample.inject('/')
  await sample.close()
  const { date, connection, 'content-length': _length, 'content-type': _type, ...lasting } = headers
  const all = Object.entries(lasting).map(([name, value]) => [name, String(value)] as const)
  return {
    all: Object.fromEntries(all),
    few: Object.fromEntries(all.filter(([name]) => FEW.includes(name))),
  }
}
