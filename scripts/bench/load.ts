import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { BenchRequest, LoadAnswer, LoadOrder } from './load-order.ts'
import type { Listening } from './processes.ts'

export type { BenchRequest } from './load-order.ts'

export interface Load {
  requests: readonly BenchRequest[]
  /** A header that gets a unique value in each request. */
  uniqueHeader?: string
  /** All connections share one position in the list, instead of each going through it. */
  sequential?: boolean
  /** The status that every answer must have. */
  status: number
}

export interface LoadRound {
  perSecond: number
  /** ms. */
  p50: number
  p99: number
  most: number
  /** µs a request. */
  cpu: number | null
}

export interface Generator {
  /** Loads a server for some seconds: at `rate` requests a second, or to saturation with `null`. */
  run(target: Listening, load: Load, seconds: number, rate?: number | null): Promise<LoadRound>
  stop(): Promise<void>
}

/** The load generator, in a process of its own, so that it shares no thread with the server or the measurement. */
export function startGenerator(): Generator {
  const child = fork(fileURLToPath(new URL('load-worker.ts', import.meta.url)), { stdio: 'inherit' })
  return {
    async run(target, { requests, status, uniqueHeader = null, sequential = false }, seconds, rate = null) {
      const before = target.cpu()
      child.send({ url: target.url, seconds, requests, uniqueHeader, sequential, rate } satisfies LoadOrder)
      const [answer] = (await once(child, 'message')) as [LoadAnswer | { error: string }]
      const after = target.cpu()
      if ('error' in answer) throw new Error(answer.error)
      refuseOtherAnswers(answer, status, target.url)
      const { perSecond, p50, p99, most } = answer
      const cpu = before === null || after === null ? null : (after - before) / answer.requests
      return { perSecond, p50, p99, most, cpu }
    },
    async stop() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}

/** Refusals are fast: a round with any other answer does not count. */
function refuseOtherAnswers(answer: LoadAnswer, status: number, url: string): void {
  const others = Object.entries(answer.statuses).filter(([code]) => Number(code) !== status)
  if (others.length === 0 && answer.failures === 0 && answer.requests > 0) return
  throw new Error(
    `${url} answered ${JSON.stringify(answer.statuses)} with ${answer.failures} failures instead of ${status}`,
  )
}
