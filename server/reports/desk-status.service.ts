import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import type { Paisa } from '../../shared/money.ts'
import { EVENT_SOURCES, type EventSource, eventBacklog } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type AttemptCount,
  type CycleSums,
  cycleSums,
  openFlagCounts,
  type PayoutSums,
  payoutSums,
  releasedSum,
  type Sum,
  salesByHour,
  setAsideSince,
  visitsByHour,
  waitingAttempts,
} from './desk-status.store.ts'

export const STATUS_HOURS = 24

/** Where the whole marketplace stands; times in epoch ms, amounts in paisa. */
export interface DeskStatus {
  /** The beginning of the first of the hours below. */
  from: number
  clicksByHour: number[]
  acceptedByHour: number[]
  rejectedByHour: number[]
  commission: Paisa
  inbox: { source: EventSource; waiting: number; oldest: number | null }[]
  setAside: number
  cycles: CycleSums
  payouts: PayoutSums
  /** Creators with released money in no payout; `count` is how many. */
  released: Sum
  attempts: AttemptCount[]
  flags: { high: number; medium: number; low: number }
}

/** Reads it all along indexes, and takes no lock. */
export async function deskStatus(platform: Platform): Promise<DeskStatus> {
  const { reader } = platform.database
  const now = platform.clock.now()
  const from = now - STATUS_HOURS * HOUR_MS
  const clicks = await visitsByHour(reader, from)
  const sales = await salesByHour(reader, from)
  const accepted = sales.filter((row) => row.status === 'accepted')
  const rejected = sales.filter((row) => row.status === 'rejected')
  const inbox: DeskStatus['inbox'] = []
  for (const source of EVENT_SOURCES) inbox.push({ source, ...(await eventBacklog(platform, source)) })
  return {
    from,
    clicksByHour: hours(clicks),
    acceptedByHour: hours(accepted),
    rejectedByHour: hours(rejected),
    commission: accepted.reduce((sum, row) => sum + row.commission, 0),
    inbox,
    setAside: await setAsideSince(reader, from),
    cycles: await cycleSums(reader, null, {
      now,
      unpaidBefore: now - platform.config.FLAG_CYCLE_UNPAID_DAYS * DAY_MS,
    }),
    payouts: await payoutSums(reader, null),
    released: await releasedSum(reader),
    attempts: await waitingAttempts(reader),
    flags: await openFlagCounts(reader),
  }
}

/** What is dated in the future, by a clock that is ahead, counts as of now. */
function hours(rows: readonly { hour: number; count: number }[]): number[] {
  const counts: number[] = Array.from({ length: STATUS_HOURS }, () => 0)
  for (const { hour, count } of rows) {
    const at = Math.min(Math.max(0, Number(hour)), STATUS_HOURS - 1)
    counts[at] = (counts[at] ?? 0) + count
  }
  return counts
}
