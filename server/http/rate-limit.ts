import type { AnyRouter } from '@trpc/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { identify, proceduresOf, type RequestContext } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { addressKey } from '../platform/network/client-address.ts'
import { RateLimiter, type Standing } from '../platform/network/rate-limiter.ts'
import type { Platform } from '../platform/platform.ts'

export const RATE_LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const

const WINDOW_SECONDS = 60
/** A procedure call of a request; a tRPC batch has several. */
export interface RequestedCall {
  name: string
  input(): unknown
}

/**
 * Counts a request's calls before they run, and sets the RateLimit headers of the tightest limit. Throws `rate_limited` with the seconds
 * to wait. Call it once a request.
 */
export type Admit = (
  request: FastifyRequest,
  reply: FastifyReply,
  context: RequestContext,
  calls: readonly RequestedCall[],
) => Promise<void>

export type RateLimits = ReturnType<typeof createRateLimits>

interface Limit {
  standing: Standing
  detail: string
}

/**
 * Limits a minute: password checks by address, of all processes on PostgreSQL; public calls by address and all calls by account, of this
 * process. A tRPC batch of ten calls costs ten. `users/password-attempts.service.ts` limits the attempts on one account's password.
 */
export function createRateLimits({ config, database }: Platform, appRouter: AnyRouter) {
  const seconds = WINDOW_SECONDS
  const auth = new RateLimiter(
    { points: config.RATE_LIMIT_AUTH, seconds },
    { shared: { name: 'auth', database } },
  )
  const open = new RateLimiter({ points: config.RATE_LIMIT_PUBLIC, seconds })
  const user = new RateLimiter({ points: config.RATE_LIMIT_USER, seconds })
  const metaOf = new Map(proceduresOf(appRouter).map(({ name, meta }) => [name, meta]))
  const limitOf = ({ name }: RequestedCall) => metaOf.get(name)?.limit

  /** Whether a call tries a password. An input that cannot be parsed is refused by the procedure. */
  async function isTry(call: RequestedCall): Promise<boolean> {
    const limit = limitOf(call)
    if (limit !== 'with_password') return limit === 'auth'
    const input = await new Promise((resolve) => resolve(call.input())).catch(() => null)
    return typeof input === 'object' && input !== null && 'current_password' in input
  }

  async function countByAddress(
    limiter: RateLimiter,
    request: FastifyRequest,
    calls: number,
  ): Promise<Limit[]> {
    const standing = calls > 0 ? await limiter.consume(addressKey(request.ip), calls) : null
    if (!standing) return []
    return [{ standing, detail: `At most ${standing.limit} of these calls per minute from one address.` }]
  }

  async function countByUser(context: RequestContext, calls: number): Promise<Limit[]> {
    if (config.RATE_LIMIT_USER === 0) return []
    const actor = await identify(context)
    const standing = actor && (await user.consume(actor.userId, calls))
    if (!standing) return []
    return [{ standing, detail: `At most ${standing.limit} calls per minute from one account.` }]
  }

  const admit: Admit = async (request, reply, context, calls) => {
    const tries = (await Promise.all(calls.map(isTry))).filter(Boolean).length
    const others = calls.filter(
      (call) => metaOf.get(call.name)?.callers === 'public' && limitOf(call) === undefined,
    )
    const limits = [
      ...(await countByAddress(auth, request, tries)),
      ...(await countByAddress(open, request, others.length)),
    ]
    // If the address is over its limit, skip the token look-up.
    const exceeded = limits.some(({ standing }) => standing.exceeded)
    settle(reply, exceeded ? limits : [...limits, ...(await countByUser(context, calls.length))])
  }
  return {
    admit,
    /** For public routes that are not procedures. */
    async admitPublic(request: FastifyRequest, reply: FastifyReply) {
      settle(reply, await countByAddress(open, request, 1))
    },
    /** For authenticated routes that are not procedures. */
    async admitUser(reply: FastifyReply, context: RequestContext) {
      settle(reply, await countByUser(context, 1))
    },
  }
}

function settle(reply: FastifyReply, limits: readonly Limit[]): void {
  const [tightest] = limits.toSorted(
    ({ standing: a }, { standing: b }) =>
      Number(b.exceeded) - Number(a.exceeded) ||
      (a.exceeded ? b.resetsIn - a.resetsIn : a.remaining - b.remaining),
  )
  if (!tightest) return
  const { standing, detail } = tightest
  const [limit, remaining, reset] = RATE_LIMIT_HEADERS
  reply.header(limit, standing.limit).header(remaining, standing.remaining).header(reset, standing.resetsIn)
  if (!standing.exceeded) return
  const wait = standing.resetsIn === 1 ? '1 second' : `${standing.resetsIn} seconds`
  throw new Refusal('rate_limited', `${detail} Try again in ${wait}.`, { retryAfter: standing.resetsIn })
}
