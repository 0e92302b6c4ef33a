import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import type { ServiceProcess } from './service-process.ts'

export interface OutgoingRequest {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

export interface Answer {
  /** 0 when there was none. */
  status: number
  retryAfter: number
  location: string
  /** The start of the body of an answer that is not 2xx or 3xx. */
  problem: string
}

/** What stands in front of the web processes. */
export interface Front {
  send(request: OutgoingRequest): Promise<Answer>
  close(): Promise<void>
}

/** More than any answer may take. */
const TIMEOUT_MS = 300_000
const CONNECTIONS = 200
/** A load balancer's usual check is slower; DRAIN_SECONDS of the processes has room for two of these. */
const CHECK_EVERY_MS = 200

function connectTo(web: { url: string }): Pool {
  return new Pool(web.url, { connections: CONNECTIONS, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
}

async function exchange(pool: Pool, { method, path, headers, body }: OutgoingRequest): Promise<Answer> {
  const answer = await pool.request({ method, path, headers, body: body ?? null })
  const header = (name: string) => String(answer.headers[name] ?? '')
  const isGood = answer.statusCode < 400
  if (isGood) await answer.body.dump()
  return {
    status: answer.statusCode,
    retryAfter: Number(header('retry-after')),
    location: header('location'),
    problem: isGood ? '' : (await answer.body.text()).slice(0, 500),
  }
}

function noAnswer(error: unknown): Answer {
  return { status: 0, retryAfter: 0, location: '', problem: String(error) }
}

/** As these two do; its end waits for the requests under way. */
function frontOf(send: Front['send'], end: () => Promise<void>): Front {
  const underWay = new Set<Promise<Answer>>()
  return {
    send(request) {
      const answer = send(request).catch(noAnswer)
      underWay.add(answer)
      void answer.then(() => underWay.delete(answer))
      return answer
    },
    async close() {
      await Promise.all(underWay)
      await end()
    },
  }
}

/** Sends to each web process alternately, whether it is ready or not: shows what the processes themselves answer. */
export function openDirect(webs: readonly { url: string }[]): Front {
  const pools = webs.map(connectTo)
  let turn = 0
  const send = (request: OutgoingRequest) => {
    turn = (turn + 1) % pools.length
    return exchange(pools[turn] as Pool, request)
  }
  return frontOf(send, async () => {
    await Promise.all(pools.map((pool) => pool.destroy()))
  })
}

/** A load balancer that sends only to processes whose `/readyz` answers 200, each request once. */
export function openBalancer(webs: readonly ServiceProcess[]): Front {
  const backends = webs.map((web) => ({ web, pool: connectTo(web), isReady: true }))
  let turn = 0
  let running = true
  const checks = backends.map(async (backend) => {
    while (running) {
      backend.isReady = await backend.web.isReady()
      await pause(CHECK_EVERY_MS)
    }
  })
  const send = (request: OutgoingRequest) => {
    const ready = backends.filter(({ isReady }) => isReady)
    turn += 1
    return exchange((ready[turn % ready.length] ?? backends[turn % backends.length])?.pool as Pool, request)
  }
  return frontOf(send, async () => {
    running = false
    await Promise.all(checks)
    await Promise.all(backends.map(({ pool }) => pool.destroy()))
  })
}
