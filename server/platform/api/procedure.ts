import { AsyncLocalStorage } from 'node:async_hooks'
import { type AnyRouter, initTRPC, TRPCError } from '@trpc/server'
import type { z } from 'zod'
import { ERROR_STATUS, type ErrorCode } from '../../../shared/error-codes.ts'
import type { Role } from '../../../shared/schemas/common.ts'
import type { ApiKeyScope } from '../../../shared/schemas/users.ts'
import type { Platform } from '../platform.ts'
import { answerOnce } from './idempotency.ts'
import { problemOf, refusalOf, tamperedRowOf } from './problem.ts'
import { Refusal } from './refusal.ts'

/** Who is calling. */
export interface Actor {
  userId: string
  role: Role
  /** Absent with an API key. */
  sessionId?: string
  /** The API key in place of a session. */
  apiKey?: { id: string; scope: ApiKeyScope }
  /** The session can only set up a second factor: see `duringSetup`. */
  setupOnly?: true
}

/** A caller who is logged in. */
export type SessionActor = Actor & { sessionId: string }

/** Where a page keeps its session: the browser sends it, and no script can read it. */
export interface SessionCookie {
  /** Until `expiresAt`, epoch ms. */
  keep(token: string, expiresAt: number): void
  clear(): void
}

/** What procedures know of a request. If `actor` is a function, the caller is looked up when a procedure runs. */
export interface RequestContext {
  platform: Platform
  actor: Actor | null | (() => Promise<Actor | null>)
  requestId: string
  /** The caller's network address; TRUST_PROXY decides whether forwarding headers count. */
  clientAddress: string
  /** The caller's `User-Agent`, as sent. */
  agent?: string | undefined
  /** The caller's `Idempotency-Key`, as sent. */
  idempotencyKey?: string | undefined
  /** For a caller whose session is, or is to be, in a cookie. */
  sessionCookie?: SessionCookie
  /** Response headers that the procedure may set, lower case; absent over tRPC. */
  answerHeaders?: Record<string, string>
  /** For a subscription: aborted when the caller disconnects. */
  gone?: AbortSignal
}

export interface RestRoute {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** In Fastify's notation: `/offers/:id`. */
  path: string
  /** For a DELETE whose fields are too secret for an address: it takes them from the body, and is not in the API reference. */
  takesBody?: true
  /** A second address of the same procedure. */
  also?: Pick<RestRoute, 'method' | 'path' | 'takesBody'>
  /** The success status; 200 by default. */
  status?: 200 | 201 | 202 | 204
  /** The path of the created resource; its `:names` are fields of the output. */
  location?: string
  /** Headers that the procedure sets in `ctx.answerHeaders`, for the API reference. */
  headers?: Readonly<
    Record<string, { description: string; schema: { type: 'integer' | 'string' }; example: number | string }>
  >
  /**
   * The name of a cache for responses to anonymous callers, which also carry an ETag. Changes to what they show must clear
   * that cache.
   */
  shared?: string
  /** Ignore unknown query parameters: `all`, or only what apps add to shared links, such as `fbclid` and `utm_*`. */
  ignoresUnknownQuery?: 'all' | 'noise'
}

interface ProcedureMeta {
  /** The REST route; without it the procedure is reachable over tRPC only. */
  rest?: RestRoute
  /** One line for the API reference. */
  summary: string
  description?: string
  /**
   * The schema of an output that is documented but not validated, instead of `output`: for lists on the hot paths, whose tests
   * validate responses.
   */
  answers?: z.ZodType
  /** For a public procedure whose response depends on the caller, if there is a token. */
  acceptsToken?: true
  /** Sessions that can only set up a second factor may call it. */
  duringSetup?: true
  /**
   * Calls count against RATE_LIMIT_AUTH: they check a password or a token, create an account or mail a link. `with_password`: only with a
   * `current_password` in the input.
   */
  limit?: 'auth' | 'with_password'
  /** It makes something: with an `Idempotency-Key`, a repeated call gets the answer of the first and makes nothing. */
  creates?: true
  /** The codes that the procedure itself can refuse with, besides those of its input and callers. */
  errors?: readonly ErrorCode[]
  /** Examples of their texts in the API reference, for codes that mean something else in each operation. */
  details?: Partial<Record<ErrorCode, string>>
}

/** The roles that may call; `public` includes anonymous callers. */
export type Callers = 'public' | readonly Role[]

export interface DeclaredMeta extends ProcedureMeta {
  callers: Callers
  /** API keys are refused; see `sessionProcedure`. */
  sessionOnly?: true
}

/** The request id, for tRPC errors that occur before there is a context. */
export const requestIds = new AsyncLocalStorage<string>()

const t = initTRPC
  .context<RequestContext>()
  .meta<DeclaredMeta>()
  .create({
    isDev: false,
    sse: {
      ping: { enabled: true, intervalMs: 10_000 },
      // Three missed pings.
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
  410: 'NOT_FOUND',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
  503: 'SERVICE_UNAVAILABLE',
}

/** A refusal as a `TRPCError`. */
export function trpcErrorOf(refusal: Refusal): TRPCError {
  const code = TRPC_CODE[ERROR_STATUS[refusal.code]] ?? 'INTERNAL_SERVER_ERROR'
  return new TRPCError({ code, message: refusal.detail, cause: refusal })
}

/** Any error of a procedure as a `TRPCError` whose cause is a `Refusal`. Logs bugs and internal details, flags a changed row. */
export async function refused(
  { platform, requestId }: Pick<RequestContext, 'platform' | 'requestId'>,
  procedure: string,
  error: unknown,
): Promise<TRPCError> {
  const refusal = refusalOf(error, platform.database)
  const tampered = tamperedRowOf(error)
  if (tampered) await platform.reportTampered(tampered)
  const { log } = platform
  const facts = { requestId, procedure }
  if (refusal.code === 'internal') {
    log.error({ ...facts, err: (error instanceof TRPCError && error.cause) || error }, 'bug')
  } else if (refusal.internalDetail) log.warn({ ...facts, detail: refusal.internalDetail }, refusal.code)
  return trpcErrorOf(refusal)
}

/**
 * The middleware of every procedure: finds the caller, checks permission, answers a repeated call, converts errors. It is one, because tRPC
 * copies the whole request for each middleware.
 */
function guarded<Caller extends Actor | null>(
  admit: (actor: Actor | null, type: ProcedureRecord['type']) => Caller,
  check?: (platform: Platform, actor: Caller) => Promise<void>,
) {
  return t.middleware(async ({ ctx, next, path, type, meta, getRawInput }) => {
    const { platform, idempotencyKey: key } = ctx
    const run = (actor: Caller) => next({ ctx: { actor } })
    let result: Awaited<ReturnType<typeof run>>
    try {
      const actor = admit(await identify(ctx), type)
      await check?.(platform, actor)
      if (meta?.creates && key !== undefined && actor !== null) {
        const call = { userId: actor.userId, key, procedure: path, input: await getRawInput() }
        // tRPC looks at these fields only.
        result = (await answerOnce(platform, call, () => run(actor))) as typeof result
      } else result = await run(actor)
    } catch (error) {
      throw await refused(ctx, path, error)
    }
    return result.ok ? result : { ...result, error: await refused(ctx, path, result.error) }
  })
}

/** The caller of a request; `null` without a valid token. */
export async function identify({ actor }: RequestContext): Promise<Actor | null> {
  return typeof actor === 'function' ? actor() : actor
}

export const NOT_LOGGED_IN = 'Log in and send the token as a bearer token.'

export const NOT_WITH_KEY = 'An API key cannot do this: log in and send the token of the session.'

export const SETUP_ONLY =
  'Admins need a second factor. Set it up with POST /auth/totp and POST /auth/totp/confirm first.'

/** Refuses a session that can only set up a second factor with `forbidden`. */
export function refuseSetupOnly(actor: Actor): void {
  if (actor.setupOnly) throw new Refusal('forbidden', SETUP_ONLY)
}

const anyone = guarded((actor) => (actor?.setupOnly ? null : actor))

/** A procedure that anyone may call; `ctx.actor` is `null` without a valid token, or with one that can only set up a second factor. */
export function publicProcedure(meta: ProcedureMeta) {
  return t.procedure.meta({ ...meta, callers: 'public' }).use(anyone)
}

/** Refuses with `unauthenticated`, or with `forbidden` another role, a session that must set up a second factor, and an API key that may only read. */
function admitRole(
  roles: readonly Role[],
  { duringSetup }: ProcedureMeta,
  actor: Actor | null,
  type: ProcedureRecord['type'],
): Actor {
  if (!actor) throw new Refusal('unauthenticated', NOT_LOGGED_IN)
  if (!roles.includes(actor.role)) {
    throw new Refusal('forbidden', `The role ${actor.role} may not do this.`)
  }
  if (!duringSetup) refuseSetupOnly(actor)
  if (actor.apiKey?.scope === 'read' && type === 'mutation') {
    throw new Refusal('forbidden', 'This API key may only read. Use one with the scope write.')
  }
  return actor
}

/**
 * A procedure for these roles, by session or API key. Refuses with `unauthenticated` or `forbidden` before the input is validated; an API
 * key with the scope `read` may call queries and subscriptions only.
 */
export function procedure(roles: readonly Role[], meta: ProcedureMeta) {
  const ofRoles = guarded((actor, type) => admitRole(roles, meta, actor, type))
  return t.procedure.meta({ ...meta, callers: roles }).use(ofRoles)
}

/**
 * As `procedure`, for what concerns the account's own safety: every API key is refused with `forbidden`. `check` may refuse the session
 * before the input is validated.
 */
export function sessionProcedure(
  roles: readonly Role[],
  meta: ProcedureMeta,
  check?: (platform: Platform, actor: SessionActor) => Promise<void>,
) {
  const ofRoles = guarded((actor, type): SessionActor => {
    const { sessionId, ...caller } = admitRole(roles, meta, actor, type)
    if (sessionId === undefined) throw new Refusal('forbidden', NOT_WITH_KEY)
    return { ...caller, sessionId }
  }, check)
  return t.procedure.meta({ ...meta, callers: roles, sessionOnly: true }).use(ofRoles)
}

/** A custom tRPC input parser with the schema it stands for. */
interface Described {
  describes: unknown
}

/** An input that is parsed synchronously, for hot paths; tRPC itself uses zod's slower asynchronous parsing. */
export function syncInput<Schema extends z.ZodType>(schema: Schema) {
  type Parser = Described & {
    _input: z.input<Schema>
    _output: z.output<Schema>
    parse(input: unknown): z.output<Schema>
  }
  return { describes: schema, parse: (input: unknown) => schema.parse(input) } as Parser
}

/** A procedure as the REST adapter and the API reference see it. tRPC documents these fields only in part; a test covers them. */
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

/** Every procedure of a router, by name. Throws if one does not declare its callers. */
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
      inputs: (_def.inputs ?? []).map((input) => (input as Partial<Described>).describes ?? input),
      output: answers ?? _def.output,
    }
  })
}

/** The REST routes of a procedure: none, its route, or that and its second address. */
export function routesOf({ meta: { rest } }: Pick<ProcedureRecord, 'meta'>): RestRoute[] {
  return rest ? [rest, ...(rest.also ? [{ ...rest, ...rest.also }] : [])] : []
}
