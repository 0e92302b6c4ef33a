import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { type BenchRequest, CONNECTIONS, type LoadAnswer } from './load-order.ts'

export interface OpenLoad {
  url: string
  seconds: number
  /** Requests a second. */
  rate: number
  /** The request of this place in the sequence. */
  requestAt(place: number): BenchRequest
}

/**
 * Sends requests at a fixed rate and measures each from the moment at which it was due. So a stall of the server counts for every request
 * that was due meanwhile, and not only for the few that were under way (coordinated omission).
 */
export async function runOpenLoop({ url, seconds, rate, requestAt }: OpenLoad): Promise<LoadAnswer> {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 })
  const total = Math.round(rate * seconds)
  const latencies: number[] = []
  const statuses: Record<string, number> = {}
  let failures = 0
  const send = async (place: number, due: number) => {
    try {
      const { statusCode, body } = await pool.request(requestAt(place))
      await body.dump()
      statuses[statusCode] = (statuses[statusCode] ?? 0) + 1
      latencies.push(performance.now() - due)
    } catch {
      failures += 1
    }
  }
  const start = performance.now()
  const underWay: Promise<void>[] = []
  while (underWay.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - start) * rate) / 1000))
    while (underWay.length < due)
      underWay.push(send(underWay.length, start + (underWay.length * 1000) / rate))
    await pause(1)
  }
  await Promise.all(underWay)
  const elapsed = (performance.now() - start) / 1000
  await pool.close()
  latencies.sort((one, other) => one - other)
  const quantile = (share: number) => latencies[Math.ceil(latencies.length * share) - 1] ?? Number.NaN
  return {
    requests: latencies.length,
    perSecond: latencies.length / elapsed,
    p50: quantile(0.5),
    p99: quantile(0.99),
    most: quantile(1),
    statuses,
    failures,
  }
}
