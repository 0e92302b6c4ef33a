/** Visits in two spans of time, one after the other; times in epoch ms. */
export interface VisitWindow {
  /** When the present span began. */
  since: number
  present: number
  /** Of the span just before it. */
  former: number
}

/**
 * Counts one more visit at `at`. Two numbers instead of a list of times: an address that comes a thousand times takes no more room
 * than one that comes once.
 */
export function countVisit(window: VisitWindow | undefined, at: number, spanMs: number): VisitWindow {
  if (!window || at - window.since >= 2 * spanMs) return { since: at, present: 1, former: 0 }
  if (at - window.since < spanMs) return { ...window, present: window.present + 1 }
  return { since: window.since + spanMs, present: 1, former: window.present }
}

/** Visits within the last `spanMs` up to `at`, taking those of the former span as evenly spread over it. */
export function visitsWithin(window: VisitWindow, at: number, spanMs: number): number {
  const elapsed = Math.min(Math.max(0, at - window.since), spanMs)
  return window.present + Math.floor((window.former * (spanMs - elapsed)) / spanMs)
}
