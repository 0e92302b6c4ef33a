import { AsyncLocalStorage } from 'node:async_hooks'
import { type AnyRouter, initTRPC, TRPCError } from '@trpc/server'
import type { z } from 'zod'
import { ERROR_STATUS, type ErrorCode } from '../../shared/error-codes.ts'
import type { Role } from '../../shared/schemas/common.ts'
import type { Platform } from './platform.ts'
import { problemOf, refusalOf } from './problem.ts'
import { Refusal } from './refusal.ts'

/** Who is calling. */
export interface Actor {
  userId: string
  role: Role
  sessionId: string
}

/** What a request brings along. `actor` may be a function: who calls is then found out only when a procedure runs. */
export interface RequestContext {
  platform: Platform
  actor: Actor | null | (() => Promise<Actor | null>)
  requestId: string
  /** The caller's network address, as far as TRUST_PROXY lets us know it. */
  clientAddress: string
  /** Headers of a REST answer, lower case; without it the call came through tRPC. */
  answerHeaders?: Record<string, string>
  /** For a subscription: aborted when the caller has gone. */
  gone?: AbortSignal
}

export interface RestRoute {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** As Fastify writes it: `/offers/:id`. */
  path: string
  /** Of a success; 200 unless told. */
  status?: 200 | 201 | 202 | 204
  /** Where what was made can be found: a path whose `:names` are fields of the output. */
  location?: string
  /** Further headers of a success, with what they say, for the reference. The procedure sets them in `ctx.answerHeaders`. */
  headers?: Readonly<Record<string, { description: string; schema: { type: 'integer' | 'string' } }>>
  /**
   * Answers to callers without a credential are all alike: they carry an ETag, and are kept for a moment in the cache of
   * this name, which whoever changes what they show clears.
   */
  shared?: string
  /** Query parameters that the input does not know are ignored: shared links collect `fbclid` and `utm_*`. */
  ignoresUnknownQuery?: true
}

export interface ProcedureMeta {
  /** Its route beside tRPC; without one it is reached through tRPC only. */
  rest?: RestRoute
  /** One line for the reference. */
  summary: string
  description?: string
  /**
   * The schema of an output that is only described, and not looked through again before it is sent. For the long lists of
   * the hot paths: their items are made field by field, their tests hold each answer against the schema, and to check fifty
   * once more took an eighth of all the time that a page takes. Elsewhere it is `output`.
   */
  answers?: z.ZodType
  /** The codes that this procedure itself can refuse with; those of its input and callers are understood. */
  errors?: readonly ErrorCode[]
}

/** The roles that may call, or everybody. */
export type Callers = 'public' | readonly Role[]

export interface DeclaredMeta extends ProcedureMeta {
  callers: Callers
}

/** The id of the request being answered, for tRPC's complaints that come before there is a context. */
export const requestIds = new AsyncLocalStorage<string>()

const t = initTRPC
  .context<RequestContext>()
  .meta<DeclaredMeta>()
  .create({
    isDev: false,
    sse: {
      ping: { enabled: true, intervalMs: 10_000 },
      // Three pings that do not come: the connection is dead, whatever TCP believes.
      client: { reconnectAfterInactivityMs: 30_000 },
    },
    errorFormatter({ shape, error, ctx }) {
      const requestId = ctx?.requestId ?? requestIds.getStore() ?? ''
      const problem = problemOf(error, requestId, ctx?.platform.database ?? { faultOf: () => null })
      return {
        code: shape.code,
        message: problem.body.detail,
        data: { code: error.code, httpStatus: problem.status, path: shape.data.path, problem: problem.body },
      }
    },
  })

export const router = t.router

const TRPC_CODE: Record<number, TRPCError['code']> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_SUPPORTED',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
  503: 'SERVICE_UNAVAILABLE',
}

/** A refusal as tRPC carries it. */
export function trpcErrorOf(refusal: Refusal): TRPCError {
  const code = TRPC_CODE[ERROR_STATUS[refusal.code]] ?? 'INTERNAL_SERVER_ERROR'
  return new TRPCError({ code, message: refusal.detail, cause: refusal })
}

/** Whatever went wrong further in, as it leaves: a `TRPCError` whose cause is a `Refusal`. */
function refused({ platform, requestId }: RequestContext, procedure: string, error: unknown): TRPCError {
  const refusal = refusalOf(error, platform.database)
  const { log } = platform
  const facts = { requestId, procedure }
  if (refusal.code === 'internal') {
    log.error({ ...facts, err: (error instanceof TRPCError && error.cause) || error }, 'bug')
  } else if (refusal.internalDetail) log.warn({ ...facts, detail: refusal.internalDetail }, refusal.code)
  return trpcErrorOf(refusal)
}

/**
 * The one layer around every procedure: who calls, whether they may, and what is told of what goes wrong. Each further layer
 * is a copy of the whole request in tRPC, which a list that is asked for often would feel.
 */
function guarded<Caller extends Actor | null>(admit: (actor: Actor | null) => Caller) {
  return t.middleware(async ({ ctx, next, path }) => {
    let actor: Caller
    try {
      actor = admit(await identify(ctx))
    } catch (error) {
      throw refused(ctx, path, error)
    }
    const result = await next({ ctx: { actor } })
    return result.ok ? result : { ...result, error: refused(ctx, path, result.error) }
  })
}

async function identify(ctx: RequestContext): Promise<Actor | null> {
  return typeof ctx.actor === 'function' ? ctx.actor() : ctx.actor
}

const everybody = guarded((actor) => actor)

/** A procedure that everyone may call; `ctx.actor` is `null` for a caller without a valid credential. */
export function publicProcedure(meta: ProcedureMeta) {
  return t.procedure.meta({ ...meta, callers: 'public' }).use(everybody)
}

/**
 * A procedure for these roles: without a credential it refuses with `unauthenticated`, with another role's with
 * `forbidden`, both before it looks at the input.
 */
export function procedure(roles: readonly Role[], meta: ProcedureMeta) {
  const ofRoles = guarded((actor) => {
    if (!actor) throw new Refusal('unauthenticated', 'Log in and send a valid bearer token.')
    if (roles.includes(actor.role)) return actor
    throw new Refusal('forbidden', `This is not for the role ${actor.role}.`)
  })
  return t.procedure.meta({ ...meta, callers: roles }).use(ofRoles)
}

/** An input as tRPC takes it, and the schema that it is. */
interface Described {
  describes: unknown
}

/**
 * An input that is checked at once. By itself tRPC has zod check everything as if it could wait for something, which is the slow way:
 * for the lists of the hot paths.
 */
export function atOnce<Schema extends z.ZodType>(schema: Schema) {
  type Parser = Described & {
    _input: z.input<Schema>
    _output: z.output<Schema>
    parse(input: unknown): z.output<Schema>
  }
  return { describes: schema, parse: (input: unknown) => schema.parse(input) } as Parser
}

/** A procedure as the adapters see it. `_def.procedures` and these fields are tRPC's, half documented: a test watches them. */
export interface ProcedureRecord {
  name: string
  type: 'query' | 'mutation' | 'subscription'
  meta: DeclaredMeta
  /** zod schemas; at most one of each here. */
  inputs: readonly unknown[]
  output: unknown
}

interface TrpcProcedure {
  _def: {
    type: ProcedureRecord['type']
    meta?: Partial<DeclaredMeta>
    inputs?: readonly unknown[]
    output?: unknown
  }
}

/** Every procedure of a router, by name. Throws when one does not declare who may call it. */
export function proceduresOf(appRouter: AnyRouter): ProcedureRecord[] {
  const procedures = Object.entries(appRouter._def.procedures as Record<string, TrpcProcedure>)
  return procedures.map(([name, { _def }]) => {
    const { callers, summary, answers, ...meta } = _def.meta ?? {}
    const declared = callers === 'public' || (Array.isArray(callers) && callers.length > 0)
    if (!declared || summary === undefined) throw new Error(`procedure ${name} does not declare its callers`)
    return {
      name,
      type: _def.type,
      meta: { ...meta, summary, callers: callers as Callers },
      inputs: (_def.inputs ?? []).map((input) => (isDescribed(input) ? input.describes : input)),
      output: answers ?? _def.output,
    }
  })
}

function isDescribed(input: unknown): input is Described {
  return typeof input === 'object' && input !== null && 'describes' in input
}

/** To be called at boot: a procedure that nobody gave callers to must not serve. */
export function assertEveryProcedureDeclares(appRouter: AnyRouter): void {
  proceduresOf(appRouter)
}
