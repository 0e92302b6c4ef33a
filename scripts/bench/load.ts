import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { BenchRequest, LoadAnswer, LoadOrder } from './load-order.ts'
import type { GeneratorName } from './options.ts'
import type { Listening } from './processes.ts'
import { runWrk } from './wrk.ts'

export type { BenchRequest } from './load-order.ts'

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

interface Rounds {
  run(order: LoadOrder, status: number): Promise<LoadAnswer>
  stop(): Promise<void>
}

/** The load generator, in a process of its own: it must neither share a thread with the server nor with what counts. */
export function startGenerator(name: GeneratorName): Generator {
  const rounds = name === 'wrk' ? { run: runWrk, stop: async () => {} } : startAutocannon()
  return {
    async run(target, load, seconds) {
      const before = target.cpu()
      const { requests, status, uniqueHeader = null, inTurn = false } = load
      const answer = await rounds.run({ url: target.url, seconds, requests, uniqueHeader, inTurn }, status)
      const after = target.cpu()
      if ('error' in answer) throw new Error(answer.error)
      refuseOtherAnswers(answer, status, target.url)
      const { perSecond, p50, p99, most } = answer
      const cpu = before === null || after === null ? null : (after - before) / answer.requests
      return { perSecond, p50, p99, most, cpu }
    },
    stop: rounds.stop,
  }
}

function startAutocannon(): Rounds {
  const child = fork(fileURLToPath(new URL('load-worker.ts', import.meta.url)), { stdio: 'inherit' })
  return {
    async run(order) {
      child.send(order)
      const [answer] = (await once(child, 'message')) as [LoadAnswer]
      return answer
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
