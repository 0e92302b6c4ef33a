/** Above this a process takes no requests. */
export const MAX_SKEW_MS = 2000
/** Above this a process does not start. */
export const MAX_SKEW_AT_START_MS = 60_000

interface ClockReading {
  /** This process's clock before and after the question, epoch ms. */
  before: number
  after: number
  /** The answer: the database's clock. */
  database: number
}

/**
 * How far this process's clock is ahead of the database's at least, ms; negative when it is behind. The answer may be from any moment of
 * the round trip, so a slow one proves less.
 */
export function skewOf({ before, after, database }: ClockReading): number {
  if (database < before) return before - database
  return database > after ? after - database : 0
}

/** `3.5 s behind` or `1 h ahead of` the database server's. */
export function skewText(skewMs: number): string {
  const seconds = Math.abs(skewMs) / 1000
  const size = seconds < 600 ? `${Math.round(seconds * 10) / 10} s` : `${Math.round(seconds / 60)} min`
  return `${size} ${skewMs < 0 ? 'behind' : 'ahead of'} the database server's`
}
