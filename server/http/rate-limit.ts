import type { AnyRouter } from '@trpc/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { addressKey } from '../platform/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import { proceduresOf, type RequestContext } from '../platform/procedure.ts'
import { RateLimiter, type Standing } from '../platform/rate-limiter.ts'
import { Refusal } from '../platform/refusal.ts'
import { identify } from './context.ts'

export const RATE_LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const

const WINDOW_SECONDS = 60
/** Where a password is tried or an account is made. */
const AUTH_PROCEDURES = ['auth.login', 'auth.register', 'auth.changePassword', 'users.updateMe']
/** Which try a password only when their input holds `current_password`. */
const SOMETIMES_TRYING = ['users.updateMe']

/** A procedure that a request wants to call; a tRPC request can hold several. */
export interface WantedCall {
  name: string
  input(): unknown
}

/** Asked before anything else is done for a request. */
export type Admit = (
  request: FastifyRequest,
  reply: FastifyReply,
  context: RequestContext,
  calls: readonly WantedCall[],
) => Promise<void>

export interface RateLimits {
  /**
   * Counts each call and writes the RateLimit headers of the tightest limit. Throws `rate_limited` with the seconds to
   * wait. To be called once a request.
   */
  admit: Admit
  /** The same for a public route that is no procedure. */
  admitPublic(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** The same for an authenticated route that is no procedure. */
  admitUser(reply: FastifyReply, context: RequestContext): Promise<void>
}

interface Limit {
  standing: Standing
  detail: string
}

/**
 * How often one address may try a password or call what is public, and how often one account may call: counted a process
 * and minute. Counting calls instead of requests keeps a tRPC batch from being ten calls for the price of one. How often
 * one account's password may be tried is counted where it is compared, in `users/password-attempts.service.ts`.
 */
export function createRateLimits({ config }: Platform, appRouter: AnyRouter): RateLimits {
  const perMinute = (points: number) => new RateLimiter({ points, seconds: WINDOW_SECONDS })
  const auth = perMinute(config.RATE_LIMIT_AUTH)
  const open = perMinute(config.RATE_LIMIT_PUBLIC)
  const user = perMinute(config.RATE_LIMIT_USER)
  const publicNames = new Set(
    proceduresOf(appRouter)
      .filter(({ meta }) => meta.callers === 'public')
      .map(({ name }) => name),
  )

  async function countByAddress(
    limiter: RateLimiter,
    request: FastifyRequest,
    calls: number,
  ): Promise<Limit[]> {
    const standing = calls > 0 ? await limiter.consume(addressKey(request.ip), calls) : null
    if (!standing) return []
    return [{ standing, detail: `At most ${standing.limit} of these calls a minute from one address.` }]
  }

  async function countByUser(context: RequestContext, calls: number): Promise<Limit[]> {
    if (config.RATE_LIMIT_USER === 0) return []
    const actor = await identify(context)
    const standing = actor && (await user.consume(actor.userId, calls))
    if (!standing) return []
    return [{ standing, detail: `At most ${standing.limit} calls a minute from one account.` }]
  }

  return {
    async admit(request, reply, context, calls) {
      const tries = await countAsync(calls, triesPassword)
      const others = calls.filter(({ name }) => publicNames.has(name) && !AUTH_PROCEDURES.includes(name))
      const limits = [
        ...(await countByAddress(auth, request, tries)),
        ...(await countByAddress(open, request, others.length)),
      ]
      // What an address has used up already costs no look-up of its token.
      const exceeded = limits.some(({ standing }) => standing.exceeded)
      settle(reply, exceeded ? limits : [...limits, ...(await countByUser(context, calls.length))])
    },
    async admitPublic(request, reply) {
      settle(reply, await countByAddress(open, request, 1))
    },
    async admitUser(reply, context) {
      settle(reply, await countByUser(context, 1))
    },
  }
}

async function triesPassword(call: WantedCall): Promise<boolean> {
  if (!AUTH_PROCEDURES.includes(call.name)) return false
  if (!SOMETIMES_TRYING.includes(call.name)) return true
  const input = await inputOf(call)
  return typeof input === 'object' && input !== null && 'current_password' in input
}

/** An input that cannot be read is refused where it is needed. */
async function inputOf(call: WantedCall): Promise<unknown> {
  try {
    return await call.input()
  } catch {
    return null
  }
}

async function countAsync<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<number> {
  const results = await Promise.all(items.map(test))
  return results.filter(Boolean).length
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
