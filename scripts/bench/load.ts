import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { BenchRequest, LoadAnswer, LoadOrder } from './load-worker.ts'
import type { Listening } from './processes.ts'

export type { BenchRequest } from './load-worker.ts'

export interface Load {
  requests: readonly BenchRequest[]
  /** A header that gets a text of its own in each request. */
  uniqueHeader?: string
  /** One connection goes on where the others are in the list, instead of each going through it for itself. */
  inTurn?: boolean
  /** What every answer must be. */
  status: number
}

export interface Seen {
  perSecond: number
  p50: number
  p99: number
  most: number
  /** µs a request. */
  cpu: number | null
}

export interface Generator {
  run(target: Listening, load: Load, seconds: number): Promise<Seen>
  stop(): Promise<void>
}

/** The load generator, in a process of its own: it must neither share a thread with the server nor with what counts. */
export function startGenerator(): Generator {
  const child = fork(fileURLToPath(new URL('load-worker.ts', import.meta.url)), { stdio: 'inherit' })
  return {
    async run(target, load, seconds) {
      const before = target.cpu()
      const order: LoadOrder = {
        url: target.url,
        seconds,
        requests: load.requests,
        uniqueHeader: load.uniqueHeader ?? null,
        inTurn: load.inTurn ?? false,
      }
      child.send(order)
      const [answer] = (await once(child, 'message')) as [LoadAnswer]
      const after = target.cpu()
      if ('error' in answer) throw new Error(answer.error)
      refuseOtherAnswers(answer, load.status, target.url)
      const { requests, perSecond, p50, p99, most } = answer
      const cpu = before === null || after === null ? null : (after - before) / requests
      return { perSecond, p50, p99, most, cpu }
    },
    async stop() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}

/** A server that refuses is a fast one: its figures must not pass. */
function refuseOtherAnswers(
  answer: Exclude<LoadAnswer, { error: string }>,
  status: number,
  url: string,
): void {
  const others = Object.entries(answer.statuses).filter(([code]) => Number(code) !== status)
  if (others.length === 0 && answer.failures === 0 && answer.requests > 0) return
  throw new Error(
    `${url} answered ${JSON.stringify(answer.statuses)}, with ${answer.failures} failures: ${status} was wanted`,
  )
}
