import { type AnyRouter, callTRPCProcedure } from '@trpc/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { issuesOf } from '../platform/api/problem.ts'
import {
  type ProcedureRecord,
  proceduresOf,
  type RequestContext,
  type RestRoute,
  routesOf,
} from '../platform/api/procedure.ts'
import { invalidFields, Refusal, type RefusalIssue } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { contextOf } from './context.ts'
import { etagOf, isCurrent } from './pages.ts'
import type { Admit } from './rate-limit.ts'
import { acceptJson } from './request-body.ts'
import {
  coerceText,
  type FieldSource,
  type InputShape,
  inputShapeOf,
  type TextValue,
  takesSeveral,
} from './rest-input.ts'

/** Registers the REST routes of each procedure: the same input, output and errors as over tRPC. */
export function registerRest(
  server: FastifyInstance,
  platform: Platform,
  appRouter: AnyRouter,
  admit?: Admit,
): void {
  server.register(async (scope) => {
    acceptJson(scope, { parsed: true })
    for (const procedure of proceduresOf(appRouter)) {
      for (const rest of routesOf(procedure))
        registerProcedure(scope, platform, appRouter, procedure, rest, admit)
    }
  })
}

function registerProcedure(
  scope: FastifyInstance,
  platform: Platform,
  appRouter: AnyRouter,
  procedure: ProcedureRecord,
  rest: RestRoute,
  admit: Admit | undefined,
): void {
  const shape = inputShapeOf(procedure, rest)
  const status = rest.status ?? 200
  scope.route({
    method: rest.method,
    url: rest.path,
    async handler(request, reply) {
      const context = contextOf(platform, request)
      await admit?.(request, reply, context, [{ name: procedure.name, input: () => request.body }])
      if (rest.headers) context.answerHeaders = {}
      const answer = (input: () => unknown) => callProcedure(appRouter, procedure, context, input)
      if (rest.shared !== undefined && request.headers.authorization === undefined) {
        const input = inputOf(request, shape, rest)
        const key = `${rest.path} ${JSON.stringify(input)}`
        return sendShared(platform, { name: rest.shared, key }, request, reply, () => answer(() => input))
      }
      const result = await answer(() => inputOf(request, shape, rest))
      reply.code(status)
      if (context.answerHeaders) reply.headers(context.answerHeaders)
      if (rest.location) reply.header('location', fillPath(rest.location, result))
      return status === 204 ? reply.send() : result
    },
  })
}

/** A full page of offers is about 80 KB. */
const MAX_ANSWERS = 300

/**
 * Sends a response that is the same for all anonymous callers, from the cache or computed by `answer`, with an ETag; 304 if
 * the request names that ETag. Browsers and proxies may store the response but must revalidate it.
 */
async function sendShared(
  platform: Platform,
  { name, key }: { name: string; key: string },
  request: FastifyRequest,
  reply: FastifyReply,
  answer: () => Promise<unknown>,
): Promise<FastifyReply> {
  const load = async () => {
    const body = JSON.stringify(await answer())
    return { body, etag: etagOf(body) }
  }
  const shared = await platform.caches.get(name, key, load, MAX_ANSWERS)
  const vary = [reply.getHeader('vary') ?? [], 'Authorization'].flat().join(', ')
  reply.headers({ 'cache-control': 'public, no-cache', vary })
  if (isCurrent(request, reply, shared.etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(shared.body)
}

/** Replaces the `:names` of a path with the output's fields. */
function fillPath(path: string, output: unknown): string {
  const fields = output as Record<string, unknown>
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(fields[name])))
}

/** Calls a procedure by its full name. A tRPC caller would resolve `applications.apply` as `Function.prototype.apply`. */
function callProcedure(
  appRouter: AnyRouter,
  { name, type }: ProcedureRecord,
  ctx: RequestContext,
  input: () => unknown,
): Promise<unknown> {
  return callTRPCProcedure({
    router: appRouter,
    path: name,
    type,
    ctx,
    getRawInput: async () => input(),
    signal: undefined,
    batchIndex: 0,
  })
}

/**
 * Builds a procedure's input from path, query and body. Path and query values are converted to the schema's types. Refuses
 * with `validation_failed` if a field is sent in the wrong place (a body must not override the id in the path); the message
 * includes the problems of the other fields.
 */
function inputOf(request: FastifyRequest, shape: InputShape, rest: RestRoute): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  const issues: RefusalIssue[] = []
  const take = (source: FieldSource, given: Record<string, unknown>) => {
    for (const [name, value] of Object.entries(given)) {
      const field = shape.fields.get(name)
      if (
        field?.source === source &&
        Array.isArray(value) &&
        source === 'query' &&
        !takesSeveral(field.schema)
      ) {
        issues.push({ path: name, message: 'is given twice' })
      } else if (field?.source === source) {
        input[name] = source === 'body' ? value : coerceText(value as TextValue, field.schema)
      } else if (source !== 'query' || !isIgnored(name, rest)) {
        issues.push({ path: name.slice(0, 200), message: misplaced(source, field?.source, shape) })
      }
    }
  }
  take('path', request.params as Record<string, unknown>)
  take('query', request.query as Record<string, unknown>)
  take('body', bodyOf(request.body))
  if (issues.length === 0) return input
  const { error } = shape.input.safeParse(input)
  throw invalidFields([...issues, ...(error ? issuesOf(error) : [])])
}

/** What apps add to links that are shared. */
const NOISE = /^(utm_.*|mc_.*|fbclid|gclid|ttclid|igshid|igsh|ref|_ga|_gl)$/

function isIgnored(name: string, { ignoresUnknownQuery }: RestRoute): boolean {
  return ignoresUnknownQuery === 'all' || (ignoresUnknownQuery === 'noise' && NOISE.test(name))
}

function misplaced(source: FieldSource, belongsIn: FieldSource | undefined, { fields }: InputShape): string {
  if (belongsIn) return `belongs in the ${belongsIn}, not in the ${source}`
  if (source === 'body') return 'is not a known field'
  const known = [...fields].flatMap(([name, field]) => (field.source === 'query' ? [name] : []))
  return known.length === 0
    ? 'is not a known parameter'
    : `is not a known parameter; known are ${known.join(', ')}`
}

function bodyOf(body: unknown): Record<string, unknown> {
  if (body === undefined || body === null) return {}
  if (typeof body === 'object' && !Array.isArray(body)) return body as Record<string, unknown>
  throw new Refusal('validation_failed', 'The body must be a JSON object.')
}
