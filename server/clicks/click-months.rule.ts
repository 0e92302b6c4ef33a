/** A month of clicks as PostgreSQL keeps them: in a table of its own, which goes in a moment when its time has come. */
export interface ClickMonth {
  table: string
  /** Epoch ms, inclusive and exclusive. */
  start: number
  end: number
}

/** The month (UTC) of `now` (epoch ms) and the `ahead` that follow. */
export function monthsFrom(now: number, ahead: number): ClickMonth[] {
  const today = new Date(now)
  return Array.from({ length: ahead + 1 }, (_, index) => {
    const start = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + index)
    const end = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + index + 1)
    return { table: `clicks_${new Date(start).toISOString().slice(0, 7).replace('-', '_')}`, start, end }
  })
}
