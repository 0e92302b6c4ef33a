import fastifyRateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { AnyRouter } from '@trpc/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { emailAddress } from '../../shared/schemas/users.ts'
import type { Platform } from '../platform/platform.ts'
import { type ProcedureRecord, proceduresOf } from '../platform/procedure.ts'
import { Refusal } from '../platform/refusal.ts'
import { holderOf } from './context.ts'
import { rateLimitStore } from './rate-limit-store.ts'

export const RATE_LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const

const WINDOW_MS = 60_000
/** Where a password is tried or an account is made. */
const AUTH_PROCEDURES = ['auth.login', 'auth.register', 'auth.changePassword', 'users.updateMe']
/** Whose input names the account; for the others it is the caller's own. */
const NAMING_PROCEDURES = ['auth.login', 'auth.register']
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
  calls: readonly WantedCall[],
) => Promise<void>

export interface RateLimits {
  /**
   * Counts each call and writes the RateLimit headers of the tightest limit. Throws `rate_limited` with the seconds to
   * wait. To be asked once a request.
   */
  admit: Admit
  /** The same for a public route that is no procedure. */
  admitPublic(request: FastifyRequest, reply: FastifyReply): Promise<void>
}

/** What one counter says after it has counted. Times in seconds. */
interface Standing {
  limit: number
  remaining: number
  resetsIn: number
  exceeded: boolean
}

type Count = (request: FastifyRequest, key: string) => Promise<Standing | null>

/**
 * How often one address, and one account, may try a password or call what everybody may: counted a process and minute, in bounded memory.
 * Counting calls instead of requests keeps a tRPC batch from being ten guesses for the price of one.
 */
export async function createRateLimits(
  server: FastifyInstance,
  platform: Platform,
  appRouter: AnyRouter,
): Promise<RateLimits> {
  const { config, clock } = platform
  await server.register(fastifyRateLimit, { global: false, store: rateLimitStore(clock) })
  const auth = counter(server, config.RATE_LIMIT_AUTH)
  const account = counter(server, config.RATE_LIMIT_AUTH)
  const open = counter(server, config.RATE_LIMIT_PUBLIC)
  const limited = new Set(
    proceduresOf(appRouter)
      .filter(isLimited)
      .map(({ name }) => name),
  )

  async function count(request: FastifyRequest, call: WantedCall): Promise<(Standing | null)[]> {
    if (!AUTH_PROCEDURES.includes(call.name)) {
      return limited.has(call.name) ? [await open(request, addressOf(request))] : []
    }
    if (SOMETIMES_TRYING.includes(call.name) && !(await triesPassword(call))) return []
    const byAddress = await auth(request, addressOf(request))
    // What an address has used up already must not count against the account that it guesses at.
    if (byAddress?.exceeded) return [byAddress]
    const key = await accountOf(request, call)
    return [byAddress, key === null ? null : await account(request, key)]
  }

  /** An e-mail or a user's id, which are never alike; `null` for a call that no account is tried with. */
  async function accountOf(request: FastifyRequest, call: WantedCall): Promise<string | null> {
    if (NAMING_PROCEDURES.includes(call.name)) return emailOf(call)
    // By user instead of by token: each session would have tries of its own.
    return (await holderOf(platform, request.headers.authorization))?.userId ?? null
  }

  return {
    async admit(request, reply, calls) {
      const standings: (Standing | null)[] = []
      for (const call of calls) standings.push(...(await count(request, call)))
      settle(reply, standings)
    },
    async admitPublic(request, reply) {
      settle(reply, [await open(request, addressOf(request))])
    },
  }
}

/** Whether calls of a procedure are counted: where a password is tried, and whatever needs no credential. */
export function isLimited({ name, meta }: Pick<ProcedureRecord, 'name' | 'meta'>): boolean {
  return AUTH_PROCEDURES.includes(name) || meta.callers === 'public'
}

/** A counter of its own; `null` from it means that there is no limit. */
function counter(server: FastifyInstance, limit: number): Count {
  if (limit === 0) return async () => null
  let asked = ''
  const count = server.createRateLimit({
    max: limit,
    timeWindow: WINDOW_MS,
    keyGenerator: () => asked,
  })
  return async (request, key) => {
    // Read at once, before anything is waited for, so that no other request comes between.
    asked = key
    const result = await count(request)
    if (result.isAllowed) return null
    const { remaining, ttlInSeconds, isExceeded } = result
    return { limit, remaining, resetsIn: Math.max(1, ttlInSeconds), exceeded: isExceeded }
  }
}

/** An IPv6 customer has a whole /64 of addresses, which count as one. */
function addressOf(request: FastifyRequest): string {
  return normalizeIP(request.ip)
}

/** The e-mail as accounts are told apart; `null` for an input that names no account and will be refused anyway. */
async function emailOf(call: WantedCall): Promise<string | null> {
  const input = await inputOf(call)
  if (typeof input !== 'object' || input === null || !('email' in input)) return null
  const email = emailAddress.safeParse(input.email)
  return email.success ? email.data : null
}

async function triesPassword(call: WantedCall): Promise<boolean> {
  const input = await inputOf(call)
  return typeof input === 'object' && input !== null && 'current_password' in input
}

/** What cannot be read is refused by whoever needs it. */
async function inputOf(call: WantedCall): Promise<unknown> {
  try {
    return await call.input()
  } catch {
    return null
  }
}

function settle(reply: FastifyReply, standings: readonly (Standing | null)[]): void {
  const counted = standings.filter((standing) => standing !== null)
  const [tightest] = counted.toSorted(
    (a, b) =>
      Number(b.exceeded) - Number(a.exceeded) ||
      (a.exceeded ? b.resetsIn - a.resetsIn : a.remaining - b.remaining),
  )
  if (!tightest) return
  const [limit, remaining, reset] = RATE_LIMIT_HEADERS
  reply.header(limit, tightest.limit).header(remaining, tightest.remaining).header(reset, tightest.resetsIn)
  if (!tightest.exceeded) return
  throw new Refusal('rate_limited', 'Too many requests in a minute. Try again later.', {
    retryAfter: tightest.resetsIn,
  })
}
