import type { DeliveryRow } from './webhooks.store.ts'

/** How many attempts of a delivery are kept: all of a schedule. */
const KEPT = 10

/** One attempt at a delivery. */
export interface DeliveryAttempt {
  /** When it ended, epoch ms. */
  at: number
  /** The HTTP status; `null` without a response. */
  status: number | null
  /** What went wrong, for people; `null` for a 2xx. */
  error: string | null
  durationMs: number
}

/** The last attempts, oldest first. */
export function attemptsOf({ attempt_log: log }: Pick<DeliveryRow, 'attempt_log'>): DeliveryAttempt[] {
  return log === null ? [] : JSON.parse(log)
}

/** The delivery's log with one more attempt, as it is stored. */
export function withAttempt(delivery: Pick<DeliveryRow, 'attempt_log'>, attempt: DeliveryAttempt): string {
  return JSON.stringify([...attemptsOf(delivery), attempt].slice(-KEPT))
}
