import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sharedNow } from './noise.ts'
import type { Order, Place, Report, Start } from './racer.ts'
import type { Task } from './tasks.ts'

/** Time enough for both sides to hear when they start, ms. */
const START_AFTER_MS = 2

export interface Side {
  task: Task
  /** Epoch ms. */
  clock: number
}

export interface Contest {
  reports: [Report, Report]
  /** Whether both had a transaction under way, or waited for one, at the same time. */
  collided: boolean
}

export interface Racers {
  /** Both turn to another database and processor. */
  enter(place: Place): Promise<void>
  /** Starts both sides at the same moment. */
  race(sides: readonly [Side, Side], seed: number): Promise<Contest>
  close(): Promise<void>
}

/** Two processes beside this one, each with connections of its own to the same database. */
export function openRacers(): Racers {
  const children = [startRacer(), startRacer()] as const
  const both = <T>(work: (index: 0 | 1) => Promise<T>) => Promise.all([work(0), work(1)])
  return {
    async enter(place) {
      await both((index) => {
        children[index].send(place)
        return children[index].next()
      })
    },
    async race(sides, seed) {
      // Both have their order and say so before either starts.
      await both((index) => {
        children[index].send({ ...sides[index], seed: seed * 2 + index })
        return children[index].next()
      })
      const startAt = sharedNow() + START_AFTER_MS
      const reports = await both((index) => {
        children[index].send({ startAt })
        return children[index].next() as Promise<Report>
      })
      return { reports, collided: overlap(reports[0].spans, reports[1].spans) }
    },
    async close() {
      await Promise.all(children.map((child) => child.stop()))
    },
  }
}

function startRacer() {
  const child: ChildProcess = fork(fileURLToPath(new URL('racer.ts', import.meta.url)))
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`a racer ended with ${code ?? signal}`)
  })
  // A pending request rejects; a requested end is not an error.
  ended.catch(() => {})
  return {
    send: (message: Place | Order | Start) => child.send(message),
    next: async () => (await Promise.race([once(child, 'message'), ended]))[0],
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      child.send('stop')
      await exit
    },
  }
}

function overlap(one: Report['spans'], other: Report['spans']): boolean {
  return one.some(([begun, ended]) => other.some(([from, to]) => begun < to && from < ended))
}
