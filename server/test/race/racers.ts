import { forkModule } from '../testkit/forked.ts'
import { sharedNow } from './noise.ts'
import type { Order, Place, Report, Start } from './racer.ts'
import type { Task } from './tasks.ts'

const RACER = new URL('racer.ts', import.meta.url)
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

export type Racers = ReturnType<typeof openRacers>

/** Two processes beside this one, each with connections of its own to the same database. */
export function openRacers() {
  const children = [forkModule(RACER), forkModule(RACER)] as const
  const both = <T>(work: (index: 0 | 1) => Promise<T>) => Promise.all([work(0), work(1)])
  return {
    /** Both turn to another database and processor. */
    async enter(place: Place): Promise<void> {
      await both((index) => children[index].ask(place))
    },
    /** Starts both sides at the same moment. */
    async race(sides: readonly [Side, Side], seed: number): Promise<Contest> {
      // Both have their order and say so before either starts.
      await both((index) => children[index].ask({ ...sides[index], seed: seed * 2 + index } satisfies Order))
      const startAt = sharedNow() + START_AFTER_MS
      const reports = await both((index) => children[index].ask<Report>({ startAt } satisfies Start))
      return { reports, collided: overlap(reports[0].spans, reports[1].spans) }
    },
    async close(): Promise<void> {
      for (const child of children) child.send('stop')
      await Promise.all(children.map(({ ended }) => ended))
    },
  }
}

function overlap(one: Report['spans'], other: Report['spans']): boolean {
  return one.some(([begun, ended]) => other.some(([from, to]) => begun < to && from < ended))
}
