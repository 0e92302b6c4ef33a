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

/**
 * The part of an address that one subscriber has to themselves: an IPv4 address, or the first 64 bits of an IPv6 one, below which
 * a single household picks addresses at will.
 */
export function subscriberOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return mapped
  const [front = '', back] = address.toLowerCase().replace(/%.*$/, '').split('::')
  const head = front === '' ? [] : front.split(':')
  if (back === undefined) return head.slice(0, 4).join(':')
  const tail = back === '' ? [] : back.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0')
  return [...head, ...zeros, ...tail].slice(0, 4).join(':')
}
